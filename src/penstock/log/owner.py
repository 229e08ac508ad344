"""Records that the log keeps for others: typed, opaque, replayed to their owners."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.log.interface import BrokerLog


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One journal entry that is not events, as its owner wrote it."""

    kind: int
    data: bytes
    group: int
    time_ms: int


class Owner(Protocol):
    """Keeps a state that can be told from a snapshot and the records since.

    On open the log calls ``restore`` with the snapshot of the last checkpoint, if
    there is one, then ``replay`` with every record since, in order. A ``snapshot``
    must hold the effect of every record handed over so far.

    When a group is closed the log calls ``collect`` for records that belong into it,
    each with whether it has to be synced: changes saved up become one record. When
    groups are taken back it calls ``taken_back``: what their records said must be
    said again by the next ``collect``, or be undone.
    """

    def restore(self, snapshot: bytes) -> None: ...
    def replay(self, record: Record) -> None: ...
    def snapshot(self) -> bytes: ...
    def collect(self) -> Iterable[tuple[bytes, bool]]: ...
    def taken_back(self) -> None: ...


Owners = Mapping[int, Owner]


class OpenLog(Protocol):
    """How a log is opened; everything but the owners was decided by the caller."""

    def __call__(self, *, owners: Owners) -> BrokerLog: ...
