"""Sinks: which epoch each query has committed last, so that none is stored twice.

The events of an epoch and the note of its number are in one group of the journal (see
epochs.py): after a crash both are there, or neither is. If the commit fails both are
taken back, and what was staged can be committed again.

Queries that have committed nothing for longest are forgotten beyond ``max_sinks``.
Those whose last epoch was said to be the last are counted apart, so that no number of
them makes a query forgotten that goes on; and they are forgotten after a day, when
nobody asks any more whether they were committed.

Crash promise: precious. Replayed from the journal, carried by every checkpoint.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import msgspec

from penstock.broker.options import BrokerOptions
from penstock.broker.staging import Staging
from penstock.delivery.unconfirmed import Unconfirmed
from penstock.log import Record

# No client asks again for longer: the most that Spark's option retrySeconds may be, and
# an hour for a commit that is slow.
ENDED_MS = 25 * 3600 * 1000


class Epoch(msgspec.Struct, array_like=True, frozen=True):
    """The last epoch of a query, with what the query noted of its own place."""

    query: str
    number: int
    at_ms: int
    events: int
    last: bool = False
    """Whether no other will follow."""
    note: str = ""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Epoch]).decode


class Sinks:
    """Owner of the sinks' records; see log.Owner."""

    def __init__(self, options: BrokerOptions) -> None:
        self._max_sinks = options.max_sinks
        self._last: OrderedDict[str, Epoch] = OrderedDict()
        self._ended: OrderedDict[str, Epoch] = OrderedDict()
        self._steps: Unconfirmed[tuple[Epoch, Epoch | None]] = Unconfirmed()
        self.staging = Staging(options.max_staged_bytes, options.staged_ttl_s)

    def __iter__(self) -> Iterator[Epoch]:
        """Of the queries that go on."""
        return iter(self._last.values())

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
        (self._ended if epoch.last else self._last)[epoch.query] = epoch

    def _forget(self, query: str) -> None:
        self._last.pop(query, None)
        self._ended.pop(query, None)

    def _shorten(self) -> None:
        for epochs in (self._last, self._ended):
            while len(epochs) > self._max_sinks:
                epochs.popitem(last=False)
        while self._ended and self._ended_for_ms() > ENDED_MS:
            self._ended.popitem(last=False)

    def _ended_for_ms(self) -> int:
        """How long before the newest of its kind the oldest one ended."""
        ended = self._ended.values()
        return next(reversed(ended)).at_ms - next(iter(ended)).at_ms

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
        return _encode([*self._last.values(), *self._ended.values()])

    def restore(self, snapshot: bytes) -> None:
        self._read(snapshot)

    def replay(self, record: Record) -> None:
        self._read(record.data)

    def _read(self, data: bytes) -> None:
        for epoch in _decode(data):
            self._put(epoch)
        self._shorten()
