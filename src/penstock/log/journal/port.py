"""The journal as a port: one append-only sequence of groups, wherever it is kept.

What a log promises it promises by a group in its journal: whole or not at all, in the
order of the groups, and for ever once it is synced. An append, or a sync, ends in one
of three ways:

- it returns: **done**;
- it raises WriteFailed: **failed**, and the group is not in the journal, now or later.
  Fenced, a kind of it, says besides that another writer has taken over: this one must
  not write again;
- it raises InDoubt: the group **may be stored**; that is not known yet. It is neither
  confirmed nor taken back. Nothing else is appended until ``settle`` says which it is.

A group is self-contained: its entries hold all that its replay needs, and a backend
keeps them as they are. What a backend does to save a write, or to share one, stays
inside it.

A backend belongs to one writer. ``read`` and ``begin`` come first, then appends, one at
a time: ``append``, ``sync`` and ``settle`` may run in another thread than the others,
never two of them at once. The work that ``secure`` plans may run beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from penstock.log.damage import Cut, Damage
from penstock.log.journal.group import JournalEntry


class StoredGroup(Protocol):
    """One group as it was appended."""

    @property
    def number(self) -> int: ...
    @property
    def time_ms(self) -> int: ...
    @property
    def size(self) -> int:
        """How far it moved the position of the journal."""

    def entries(self) -> Iterator[JournalEntry]: ...


class Replay(Protocol):
    """What is left of a journal from a position on. The rest is known at its end.

    Never does a group come without all that came before it: what is missing although it
    was synced once is told as damage, what was not is cut off.
    """

    def groups(self) -> Iterator[StoredGroup]: ...
    @property
    def end(self) -> int:
        """Where the journal ends."""

    @property
    def damages(self) -> Sequence[Damage]: ...
    @property
    def cuts(self) -> Sequence[Cut]: ...


class Securing(Protocol):
    """Work that makes durable what was appended without a sync; raises OSError."""

    def run(self) -> None: ...


class Journal(Protocol):
    @property
    def blocks(self) -> bool:
        """Whether an append without a sync may take long, as over a network.

        Then it is never done by a thread that others wait for.
        """

    def is_brief(self, size: int) -> bool:
        """Whether a synced append of so many bytes is one small write and one sync.

        Of a disk of this machine, that is; what takes more is never called brief.
        """

    @property
    def position(self) -> int:
        """Where the next group goes; rising, and told by checkpoints."""

    @property
    def syncs(self) -> int:
        """How often it has waited for a disk."""

    @property
    def first(self) -> int | None:
        """Where it begins; None if there is nothing in it."""

    def read(self, position: int) -> Replay:
        """The groups from ``position`` on."""

    def begin(self) -> None:
        """Make sure of all that was read, and go on behind it."""

    def append(
        self, number: int, entries: Sequence[JournalEntry], time_ms: int, *, sync: bool
    ) -> None:
        """Store one group, durably if ``sync``; raises WriteFailed, InDoubt."""

    def sync(self) -> None:
        """Make durable what was appended without; raises WriteFailed, InDoubt."""

    def settle(self) -> None:
        """Find out what became of an append in doubt, and finish it if it can be.

        Raises WriteFailed if it is not stored, InDoubt while that is not known. What is
        stored is, also if another writer has taken over since: that is for the next
        append to say.
        """

    def secure(self) -> Securing:
        """Plan to make durable all that was appended up to now, for a checkpoint."""

    def secured(self, securing: Securing) -> None:
        """Note how that has ended; while no append is under way."""

    def retire(self, position: int) -> None:
        """Groups that end at ``position`` or before are needed no more."""

    def close(self) -> None:
        """End in order. Raises OSError; ``abandon`` is called in any case."""

    def abandon(self) -> None:
        """Let go of everything at once, as a crash would."""
