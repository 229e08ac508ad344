"""What a user may have at most, of connections, topics, bytes …; None is any."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from penstock.model.option import check_options, option

QuotaName = Literal[
    "connections",
    "topics",
    "subscriptions",
    "events_per_s",
    "bytes_per_s",
    "stored_bytes",
]
NAMES: tuple[QuotaName, ...] = get_args(QuotaName)
# Those that are written with a unit.
SIZES = frozenset({"bytes_per_s", "stored_bytes"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Limits of one user; as settings, those of users whose own say nothing."""

    connections: int | None = option(
        None, "connections of one user at a time, over all gateways", least=1
    )
    topics: int | None = option(
        None, "topics that one user has made and that are still there", least=0
    )
    subscriptions: int | None = option(
        None, "subscriptions that one user has made and that are there", least=0
    )
    events_per_s: int | None = option(
        None, "events that one user may publish in a second; more wait", least=1
    )
    bytes_per_s: int | None = option(
        None,
        "bytes of events that one user may publish in a second; more wait",
        least=1,
    )
    stored_bytes: int | None = option(
        None, "bytes that the topics made by one user may take", least=0
    )

    def __post_init__(self) -> None:
        check_options(self)

    def over(self, defaults: Quota) -> Quota:
        """This one, with the defaults where it says nothing."""
        return replace(defaults, **self.limits)

    @property
    def limits(self) -> dict[QuotaName, int]:
        """What is limited, in order."""
        said = {name: getattr(self, name) for name in NAMES}
        return {name: limit for name, limit in said.items() if limit is not None}


NONE = Quota()
"""Of users that nothing is said about."""
