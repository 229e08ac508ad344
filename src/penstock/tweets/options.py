"""What can be said about a tweet server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.errors import InvalidOption

PORT = 4000
STREAMS = ("1", "2")


@dataclass(frozen=True, slots=True, kw_only=True)
class TweetOptions:
    """Rates of faults are shares of all messages; ``rate`` is per stream and second."""

    host: str = "127.0.0.1"
    port: int = PORT
    rate: float = 500.0
    steady: bool = False
    seed: int = 1
    panic_rate: float = 0.01
    malformed_rate: float = 0.001
    count: int | None = None
    """Messages of a stream; None: it never ends."""
    last: Mapping[str, int] = field(default_factory=dict)
    """The same for some streams by themselves."""

    def __post_init__(self) -> None:
        if self.rate < 0:
            raise InvalidOption("rate", self.rate, "0 (no limit) or more")
        for name in ("panic_rate", "malformed_rate"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise InvalidOption(name, share, "from 0 to 1")
        if self.panic_rate + self.malformed_rate > 1:
            both = self.panic_rate + self.malformed_rate
            raise InvalidOption("panic_rate + malformed_rate", both, "at most 1")
        if self.count is not None and self.count < 0:
            raise InvalidOption("count", self.count, "0 or more")
        for name, last in self.last.items():
            if name not in STREAMS or last < 0:
                limit = f"STREAM=N, of the streams {' and '.join(STREAMS)}"
                raise InvalidOption("last", f"{name}={last}", limit)
