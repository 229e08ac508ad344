"""Kinds of state that a broker keeps besides events, and what each is told.

A kind is a class of its own: an owner of journal records (log.Owner) under a number.
What it does not need it inherits from Kept. The broker has a line for each in its
constructor, ``keep(Dedup(…))``, and tells all of them by way of the registry; a kind is
only told what its class says something about.

What a failed commit undoes: a kind says so in its ``taken_back``, which the log calls;
what has no records, and waits for a commit all the same, is given to ``follow``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Set
from typing import ClassVar, TypeVar

from penstock.log import Batch, BrokerLog, Record

AnyKept = TypeVar("AnyKept", bound="Kept")


class Kept:
    """Nothing waits, nothing is written, and topics come and go."""

    kind: ClassVar[int]
    """On disk, and so never given another meaning: docs/formats/records.md has all."""

    @property
    def urgent(self) -> bool:
        """Whether a client waits for something to be written."""
        return False

    @property
    def dirty(self) -> bool:
        """Whether there is anything to be written."""
        return self.urgent

    def opened(self, log: BrokerLog) -> None:
        """The log is open, and has told all that it knows."""

    def committed(self, topic: str, batch: Batch) -> None:
        """Events were committed, and can be read."""

    def followed(self, topics: Set[str]) -> Set[str]:
        """Those of some topics of which ``committed`` is told all batches: small ones,
        too, that have no priority and no time at which they are delivered."""
        return topics

    def confirmed(self) -> None:
        """What was collected is on disk: it stays so."""

    def forget(self, topic: str) -> None:
        """A topic was deleted; another may get its name."""

    def drop_orphans(self, topics: Collection[str]) -> None:
        """There are no topics but these."""

    # The journal's side

    def restore(self, snapshot: bytes) -> None:
        raise NotImplementedError

    def snapshot(self) -> bytes:
        raise NotImplementedError

    def replay(self, record: Record) -> None:
        """Nothing: there are no records, or their events tell the same."""

    def collect(self) -> Iterable[tuple[bytes, bool]]:
        return ()

    def taken_back(self) -> None:
        """Nothing: only what is committed is known here."""


class KeptKinds:
    """All kinds of a broker; ``kinds`` are the owners that its log is opened with."""

    def __init__(self) -> None:
        self.kinds: dict[int, Kept] = {}
        self.urgent: tuple[Kept, ...] = ()
        """Those that a client may wait for: asked at every turn of an engine."""
        self.committed: tuple[Callable[[str, Batch], None], ...] = ()
        """Called for every batch of a commit."""
        self._followed: tuple[Callable[[Set[str]], Set[str]], ...] = ()
        self._dirty: tuple[Kept, ...] = ()
        self._confirmed: tuple[Callable[[], None], ...] = ()
        self._followers: tuple[Callable[[int], None], ...] = ()
        self._undoing: tuple[Callable[[], None], ...] = ()

    def keep(self, one: AnyKept) -> AnyKept:
        """Register a kind, before the log is opened."""
        if one.kind in self.kinds:
            raise ValueError(f"kind {one.kind} is {self.kinds[one.kind]!r} already")
        self.kinds[one.kind] = one
        says = type(one)
        if says.urgent is not Kept.urgent:
            self.urgent += (one,)
        if says.dirty is not Kept.dirty:
            self._dirty += (one,)
        if says.committed is not Kept.committed:
            self.committed += (one.committed,)
            self._followed += (one.followed,)
        if says.confirmed is not Kept.confirmed:
            self._confirmed += (one.confirmed,)
        return one

    def follow(
        self, confirmed: Callable[[int], None], taken_back: Callable[[], None]
    ) -> None:
        """Tell of commits what has no records: up to which group, or that one failed.

        After a failure the last that was given is told first, and the kinds before.
        """
        self._followers += (confirmed,)
        self._undoing = (taken_back, *self._undoing)

    def followed(self, topics: Set[str]) -> set[str]:
        """Those of some topics of which a kind has to be told all batches."""
        return {name for one in self._followed for name in one(topics)}

    @property
    def dirty(self) -> bool:
        """Whether there is anything to be written that no client waits for."""
        return any(one.dirty for one in self._dirty)

    def confirmed(self, group: int) -> None:
        """A commit has succeeded."""
        for confirm in self._confirmed:
            confirm()
        for follow in self._followers:
            follow(group)

    def taken_back(self) -> None:
        """A commit has failed, and the kinds know."""
        for undo in self._undoing:
            undo()

    def opened(self, log: BrokerLog) -> None:
        for one in self.kinds.values():
            one.opened(log)

    def forget(self, topic: str) -> None:
        for one in self.kinds.values():
            one.forget(topic)

    def drop_orphans(self, topics: Collection[str]) -> None:
        for one in self.kinds.values():
            one.drop_orphans(topics)
