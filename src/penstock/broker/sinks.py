"""Sinks: which epoch each query has committed last, so that none is stored twice.

The events of an epoch and the note of its number are in one group of the journal (see
epochs.py): after a crash both are there, or neither is. If the commit fails both are
taken back, and what was staged can be committed again.

Beyond ``max_sinks`` queries are forgotten, of the user who has the most of them the one
that has committed nothing for longest (see Ledger). Those whose last epoch was said
to be the last are counted apart, so that no number of them makes a query forgotten that
goes on; and they are forgotten after a day, when no writer asks any more whether they
were committed.

The user who stages or commits first for a query owns it, and no other user may go on
with it: an epoch of another user would have those of the owner taken for stored. A
query without an owner, such as one of an older version, belongs to the user who writes
with it next. Of a query that has committed nothing the owner is forgotten with what is
staged.

Crash promise: precious. Replayed from the journal, carried by every checkpoint.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterator

import msgspec

from penstock.broker.options import BrokerOptions
from penstock.broker.staging import Staging
from penstock.delivery.kept import Kept
from penstock.delivery.unconfirmed import Unconfirmed
from penstock.errors import LimitReached
from penstock.log import Record

__all__ = ["Epoch", "Sinks"]

# No client asks again for longer: the most that Spark's option retrySeconds may be, and
# an hour for a commit that is slow.
ENDED_MS = 25 * 3600 * 1000


# One user has at most this part of what notes may take, so that there is some left.
SHARES = 4


class Epoch(msgspec.Struct, array_like=True, frozen=True):
    """The last epoch of a query, with what the query noted of its own place."""

    query: str
    number: int
    at_ms: int
    events: int
    last: bool = False
    """Whether no other will follow."""
    note: str = ""
    owner: str = ""
    """The user whose query it is; empty if it has no owner."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Epoch]).decode


class Sinks(Kept):
    """Owner of the sinks' records."""

    kind = 263

    def __init__(self, options: BrokerOptions) -> None:
        self._max_sinks = options.max_sinks
        self._max_note_bytes = options.max_sink_bytes
        self._last = Ledger()
        self._ended = Ledger()
        self._steps: Unconfirmed[tuple[Epoch, Epoch | None]] = Unconfirmed()
        self.staging = Staging(options.max_staged_bytes, options.staged_ttl_s)

    def __iter__(self) -> Iterator[Epoch]:
        """Of the queries that go on."""
        return iter(self._last)

    @property
    def urgent(self) -> bool:
        return bool(self._steps)

    def last(self, query: str) -> Epoch | None:
        """The epoch that was committed last, perhaps just now."""
        return self._last.get(query) or self._ended.get(query)

    def has(self, query: str, number: int) -> bool:
        """Whether that epoch was committed, perhaps just now."""
        last = self.last(query)
        return last is not None and number <= last.number

    def stored(self, query: str, number: int) -> bool:
        """Whether that epoch is committed for good."""
        return self._steps.confirmed and self.has(query, number)

    def owner(self, query: str) -> str:
        """Whose query it is, perhaps only just; empty if it has no owner."""
        last = self.last(query)
        owner = "" if last is None else last.owner
        return owner or self.staging.owner(query)

    def check_note(self, query: str, owner: str, note: str) -> None:
        """Whether there is room for a note; one that is no longer than before fits.

        Raises LimitReached.
        """
        last = self.last(query)
        more = held_bytes(note) - (0 if last is None else held_bytes(last.note))
        if more <= 0:
            return
        most, held = self._max_note_bytes, self._last.note_bytes
        ended = self._ended.note_bytes
        if held.total() + ended.total() + more > most:
            raise LimitReached("bytes of notes", most, "max_sink_bytes")
        if owner and held[owner] + ended[owner] + more > most // SHARES:
            what = f"bytes of notes for {owner}"
            raise LimitReached(what, most // SHARES, f"1/{SHARES} of max_sink_bytes")

    def commit(self, epoch: Epoch) -> None:
        """Note an epoch whose events are in the open group."""
        self._steps.add((epoch, self.last(epoch.query)))
        self.staging.hold(epoch.query, epoch.number, held=True)
        self._put(epoch)

    def confirmed(self) -> None:
        """The epochs of the committed group are stored for good."""
        for epoch, _ in self._steps.confirm():
            self.staging.drop_until(epoch.query, epoch.number)
        self._shorten()

    def _put(self, epoch: Epoch) -> None:
        self._forget(epoch.query)
        (self._ended if epoch.last else self._last).put(epoch)

    def _forget(self, query: str) -> None:
        self._last.pop(query)
        self._ended.pop(query)

    def _shorten(self) -> None:
        for epochs in (self._last, self._ended):
            epochs.shorten(self._max_sinks)
        self._ended.shorten_until(ENDED_MS)

    # The journal's side

    def collect(self) -> list[tuple[bytes, bool]]:
        closed = self._steps.close()
        return [(_encode([epoch for epoch, _ in closed]), True)] if closed else []

    def taken_back(self) -> None:
        for epoch, before in self._steps.take_back():
            self.staging.hold(epoch.query, epoch.number, held=False)
            if before is None:
                self._forget(epoch.query)
            else:
                self._put(before)

    def snapshot(self) -> bytes:
        return _encode([*self._last, *self._ended])

    def restore(self, snapshot: bytes) -> None:
        self._read(snapshot)

    def replay(self, record: Record) -> None:
        self._read(record.data)

    def _read(self, data: bytes) -> None:
        for epoch in _decode(data):
            self._put(epoch)
        self._shorten()


class Ledger:
    """The last epoch of each query, in the order of their commits, counted by owner.

    There is room for so many queries. Beyond that the owner of the most of them loses
    the oldest of its own: made-up queries of one user push out none of another user's,
    as long as that one has fewer.
    """

    def __init__(self) -> None:
        self._epochs: OrderedDict[str, Epoch] = OrderedDict()
        self._counts: Counter[str] = Counter()
        self.note_bytes: Counter[str] = Counter()
        """What notes take in memory, by owner."""

    def __len__(self) -> int:
        return len(self._epochs)

    def __iter__(self) -> Iterator[Epoch]:
        return iter(self._epochs.values())

    def get(self, query: str) -> Epoch | None:
        return self._epochs.get(query)

    def put(self, epoch: Epoch) -> None:
        """Add an epoch of a query that has none here."""
        self._epochs[epoch.query] = epoch
        self._count(epoch, 1)

    def pop(self, query: str) -> None:
        """Forget a query, if it is there."""
        if (epoch := self._epochs.pop(query, None)) is not None:
            self._count(epoch, -1)

    def shorten(self, most: int) -> None:
        """Forget queries until there are no more than that."""
        while len(self._epochs) > most:
            _, owner = max((count, owner) for owner, count in self._counts.items())
            self.pop(next(one.query for one in self if one.owner == owner))

    def shorten_until(self, newer_than_ms: int) -> None:
        """Forget the oldest ones that were committed so long before the newest."""
        epochs = self._epochs
        while epochs:
            oldest, newest = next(iter(self)), next(reversed(epochs.values()))
            if newest.at_ms - oldest.at_ms <= newer_than_ms:
                return
            self.pop(oldest.query)

    def _count(self, epoch: Epoch, sign: int) -> None:
        for counter, amount in (
            (self._counts, 1),
            (self.note_bytes, held_bytes(epoch.note)),
        ):
            counter[epoch.owner] += sign * amount
            if not counter[epoch.owner]:
                del counter[epoch.owner]


def held_bytes(note: str) -> int:
    """What a note takes in memory at most: one wide character makes all of them so."""
    return len(note) * (1 if note.isascii() else 4)
