"""A journal in memory: for tests, and as an example of another backend.

It behaves like one at the other end of a network, as far as a log can tell: an append
may be slow, fail, stay in doubt, or find that another writer has taken over::

    journal = MemoryJournal()
    log = Log.open(directory, journal=journal)
    journal.doubt(stored=True)          # the next append is stored, the log not told
    ...
    journal = journal.reopened()        # another writer over the same groups
    log = Log.open(directory, journal=journal)
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from penstock.errors import Fenced, InDoubt, WriteFailed
from penstock.log import Cut, Damage, JournalEntry

NAME = "the journal in memory"
# So that every group moves the position, as a header does.
GROUP_BYTES = 64


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """One group as it was appended."""

    number: int
    time_ms: int
    position: int
    size: int
    kept: tuple[JournalEntry, ...]

    @property
    def end(self) -> int:
        return self.position + self.size

    def entries(self) -> Iterator[JournalEntry]:
        return iter(self.kept)


@dataclass(slots=True)
class _Store:
    """What all writers of one journal share."""

    groups: list[MemoryGroup] = field(default_factory=list)
    end: int = 0
    synced: int = 0
    writer: MemoryJournal | None = None


class MemoryReplay:
    def __init__(self, groups: Sequence[MemoryGroup], start: int, end: int) -> None:
        self._groups = [one for one in groups if one.position >= start]
        first = self._groups[0].position if self._groups else end
        self.end = max(end, start)
        self.cuts: list[Cut] = []
        self.damages: list[Damage] = []
        if first != start:
            low, high = sorted((first, start))
            reason = f"journal positions {low} to {high} are missing"
            self.damages.append(
                Damage(file=NAME, position=low, length=high - low, reason=reason)
            )

    def groups(self) -> Iterator[MemoryGroup]:
        return iter(self._groups)


@dataclass(frozen=True, slots=True)
class _Doubt:
    stored: bool
    looks: int


class MemoryJournal:
    """A Journal (see the port, penstock.log.Journal), the only writer of its groups.

    What is to go wrong is said before: each of ``fail`` and ``doubt`` is for one
    append, in the order in which they were said.
    """

    blocks = True

    def is_brief(self, size: int) -> bool:
        return False

    def __init__(self) -> None:
        self._store = _Store()
        self._store.writer = self
        self._faults: deque[WriteFailed | _Doubt] = deque()
        self._waiting: tuple[MemoryGroup, _Doubt] | None = None
        self._held = threading.Event()
        self._held.set()
        self.syncs = 0

    def reopened(self, *, power_lost: bool = False) -> MemoryJournal:
        """Another writer over the same groups; this one is fenced from now on.

        ``power_lost``: what was appended without a sync is gone.
        """
        store = self._store
        if power_lost:
            store.groups = [one for one in store.groups if one.end <= store.synced]
            store.end = store.synced
            if self._waiting is not None and self._waiting[0] not in store.groups:
                group, doubt = self._waiting
                self._waiting = (group, _Doubt(False, doubt.looks))
        another = MemoryJournal()
        another._store = store
        store.writer = another
        return another

    # What is to happen

    def fail(self, reason: str = "it was told to") -> None:
        """Have the next append fail."""
        self._faults.append(WriteFailed(NAME, "appending to", reason))

    def doubt(self, *, stored: bool, looks: int = 1) -> None:
        """Leave the next append in doubt, and so many looks of ``settle`` behind it."""
        self._faults.append(_Doubt(stored, looks))

    def hold(self) -> None:
        """Have appends wait until they are released."""
        self._held.clear()

    def release(self) -> None:
        self._held.set()

    # The port

    @property
    def position(self) -> int:
        return self._store.end

    @property
    def first(self) -> int | None:
        groups = self._store.groups
        return groups[0].position if groups else None

    def read(self, position: int) -> MemoryReplay:
        return MemoryReplay(self._store.groups, position, self._store.end)

    def begin(self) -> None:
        self._check_writer()
        self._store.synced = self._store.end

    def append(
        self, number: int, entries: Sequence[JournalEntry], time_ms: int, *, sync: bool
    ) -> None:
        assert self._waiting is None, "an append is in doubt"
        kept = tuple(_copied(entry) for entry in entries)
        size = GROUP_BYTES + sum(entry.size for entry in kept)
        self._held.wait()
        self._check_writer()
        group = MemoryGroup(number, time_ms, self._store.end, size, kept)
        fault = self._faults.popleft() if self._faults else None
        if isinstance(fault, WriteFailed):
            raise fault
        if fault is None or fault.stored:
            self._keep(group, sync=sync)
        if fault is not None:
            self._waiting = (group, fault)
            raise InDoubt(NAME, number, "no answer came")

    def sync(self) -> None:
        self._held.wait()
        self._check_writer()
        self._store.synced = self._store.end
        self.syncs += 1

    def settle(self) -> None:
        assert self._waiting is not None, "nothing is in doubt"
        group, doubt = self._waiting
        if doubt.looks > 1:
            self._waiting = (group, _Doubt(doubt.stored, doubt.looks - 1))
            raise InDoubt(NAME, group.number, "no answer came")
        self._waiting = None
        if not doubt.stored:
            self._check_writer()
            raise WriteFailed(NAME, "appending to", "it never arrived")

    def secure(self) -> _Secure:
        return _Secure(self)

    def secured(self, securing: object) -> None:
        """Nothing can have gone wrong."""

    def retire(self, position: int) -> None:
        store = self._store
        store.groups = [one for one in store.groups if one.end > position]

    def close(self) -> None:
        """There is nothing to let go of."""

    def abandon(self) -> None:
        """There is nothing to let go of."""

    def _keep(self, group: MemoryGroup, *, sync: bool) -> None:
        store = self._store
        store.groups.append(group)
        store.end = group.end
        if sync:
            store.synced = store.end
            self.syncs += 1

    def _check_writer(self) -> None:
        if self._store.writer is not self:
            raise Fenced(NAME, "appending to", "another writer has taken over")


class _Secure:
    def __init__(self, journal: MemoryJournal) -> None:
        self._journal = journal
        self._upto = journal.position

    def run(self) -> None:
        store = self._journal._store
        store.synced = max(store.synced, self._upto)


def _copied(entry: JournalEntry) -> JournalEntry:
    """An entry of its own, whatever becomes of its buffers."""
    return entry._replace(data=bytes(entry.data) + bytes(entry.more), more=b"")
