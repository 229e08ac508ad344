"""How long to wait before connecting again."""

from __future__ import annotations

from random import Random

# Until the server says something else.
BASE_S = 0.5
LEAST_S = 0.05
MOST_S = 30.0


class Backoff:
    """Doubles with every failure, up to a bound; half of it is left to chance.

    A server that says ``retry`` sets where it begins.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._base_s = BASE_S
        self._failures = 0

    def retry(self, retry_ms: int | None) -> None:
        """What the server asks for; None: nothing."""
        if retry_ms is not None:
            self._base_s = min(max(retry_ms / 1000, LEAST_S), MOST_S)

    def succeeded(self) -> None:
        """Events came."""
        self._failures = 0

    def next_s(self) -> float:
        # The bound keeps the power small, however often it has failed.
        doubled_s = self._base_s * (1 << min(self._failures, 16))
        self._failures += 1
        return min(doubled_s, MOST_S) * (0.5 + self._random.random() / 2)
