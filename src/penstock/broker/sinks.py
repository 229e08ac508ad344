"""Sinks: which epoch each query has committed last, so that none is stored twice.

The events of an epoch and the note of its number are in one group of the journal (see
epochs.py): after a crash both are there, or neither is. If the commit fails both are
taken back, and what was staged can be committed again.

Queries that have committed nothing for longest are forgotten beyond ``max_sinks``.

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


class Epoch(msgspec.Struct, array_like=True, frozen=True):
    """The last epoch of a query."""

    query: str
    number: int
    at_ms: int
    events: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Epoch]).decode


class Sinks:
    """Owner of the sinks' records; see log.Owner."""

    def __init__(self, options: BrokerOptions) -> None:
        self._max_sinks = options.max_sinks
        self._last: OrderedDict[str, Epoch] = OrderedDict()
        self._steps: Unconfirmed[tuple[Epoch, Epoch | None]] = Unconfirmed()
        self.staging = Staging(options.max_staged_bytes, options.staged_ttl_s)

    def __iter__(self) -> Iterator[Epoch]:
        return iter(self._last.values())

    @property
    def urgent(self) -> bool:
        return bool(self._steps)

    def last(self, query: str) -> Epoch | None:
        """The epoch that was committed last, perhaps just now."""
        return self._last.get(query)

    def has(self, query: str, number: int) -> bool:
        """Whether that epoch was committed, perhaps just now."""
        last = self._last.get(query)
        return last is not None and number <= last.number

    def stored(self, query: str, number: int) -> bool:
        """Whether that epoch is committed for good."""
        return self._steps.confirmed and self.has(query, number)

    def commit(self, epoch: Epoch) -> None:
        """Note an epoch whose events are in the open group."""
        self._steps.add((epoch, self._last.get(epoch.query)))
        self.staging.hold(epoch.query, epoch.number, held=True)
        self._put(epoch)

    def confirmed(self) -> None:
        """The epochs of the committed group are stored for good."""
        for epoch, _ in self._steps.confirm():
            self.staging.drop_until(epoch.query, epoch.number)
        self._shorten()

    def _put(self, epoch: Epoch) -> None:
        self._last[epoch.query] = epoch
        self._last.move_to_end(epoch.query)

    def _shorten(self) -> None:
        while len(self._last) > self._max_sinks:
            self._last.popitem(last=False)

    # The journal's side

    def collect(self) -> list[tuple[bytes, bool]]:
        closed = self._steps.close()
        return [(_encode([epoch for epoch, _ in closed]), True)] if closed else []

    def taken_back(self) -> None:
        for epoch, before in self._steps.take_back():
            self.staging.hold(epoch.query, epoch.number, held=False)
            if before is None:
                self._last.pop(epoch.query, None)
            else:
                self._put(before)

    def snapshot(self) -> bytes:
        return _encode(list(self._last.values()))

    def restore(self, snapshot: bytes) -> None:
        self._read(snapshot)

    def replay(self, record: Record) -> None:
        self._read(record.data)

    def _read(self, data: bytes) -> None:
        for epoch in _decode(data):
            self._put(epoch)
        self._shorten()
