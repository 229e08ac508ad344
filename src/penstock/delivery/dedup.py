"""Dedup ids: publishing one twice on a topic within the window stores once.

The window is a count and an age per topic. An id is remembered from the group that
stores its event; if that group fails it is forgotten again.

Crash promise: precious. Replayed from the journal, carried by every checkpoint.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from penstock.delivery.kept import Kept
from penstock.delivery.unconfirmed import Unconfirmed
from penstock.log import Record

# Topic, ids, offsets, time. Without ids: what was known of the topic is void.
DedupRow = tuple[str, list[str], list[int], int]

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[DedupRow]).decode


@dataclass(slots=True)
class DedupPlan:
    """What is to be stored of a batch, and where the rest is already."""

    fresh: list[int]
    """Indexes of the events to store."""
    offsets: list[int | None]
    """Where each event is; None for those that are to be stored."""
    twins: list[int]
    """Index of the event that stands for each: itself, or an earlier one."""

    def placed(self, base_offset: int) -> list[int]:
        """The offset of every event, once the fresh ones are stored from there on."""
        for place, index in enumerate(self.fresh):
            self.offsets[index] = base_offset + place
        found = [self.offsets[twin] for twin in self.twins]
        return [offset for offset in found if offset is not None]


class Dedup(Kept):
    """Owner of the dedup ids' records."""

    kind = 258

    def __init__(self, max_count: int, max_age_s: float) -> None:
        self._max_count = max_count
        self._max_age_ms = int(max_age_s * 1000)
        self._topics: dict[str, OrderedDict[str, tuple[int, int]]] = {}
        self._rows: Unconfirmed[DedupRow] = Unconfirmed()

    @property
    def urgent(self) -> bool:
        return bool(self._rows)

    def find(self, topic: str, id_: str, now_ms: int) -> int | None:
        """The offset of the event that was published with this id."""
        known = self._topics.get(topic)
        found = None if known is None else known.get(id_)
        if found is None or found[1] < now_ms - self._max_age_ms:
            return None
        return found[0]

    def plan(self, topic: str, ids: list[str | None], now_ms: int) -> DedupPlan:
        """Which events of a batch are new."""
        plan = DedupPlan([], [], [])
        seen: dict[str, int] = {}
        for index, id_ in enumerate(ids):
            found = None if id_ is None else self.find(topic, id_, now_ms)
            twin = index if id_ is None else seen.setdefault(id_, index)
            plan.offsets.append(found)
            plan.twins.append(twin)
            if found is None and twin == index:
                plan.fresh.append(index)
        return plan

    def add(self, topic: str, ids: list[str], offsets: list[int], now_ms: int) -> None:
        """Remember ids of events that are in the open group."""
        row = (topic, ids, offsets, now_ms)
        self._rows.add(row)
        self._put(row)

    def forget(self, topic: str) -> None:
        """Drop the ids of a topic that was deleted, before another gets its name."""
        if topic in self._topics:
            self.add(topic, [], [], 0)

    def drop_orphans(self, topics: Iterable[str]) -> None:
        """Drop the ids of all topics but these."""
        for topic in self._topics.keys() - set(topics):
            self.forget(topic)

    def confirmed(self) -> None:
        """The events of the committed group are stored for good."""
        for topic, _, _, at_ms in self._rows.confirm():
            self._shorten(topic, at_ms)

    def _put(self, row: DedupRow) -> None:
        topic, ids, offsets, at_ms = row
        if not ids:
            self._topics.pop(topic, None)
            return
        known = self._topics.setdefault(topic, OrderedDict())
        for id_, offset in zip(ids, offsets, strict=True):
            known[id_] = (offset, at_ms)
            known.move_to_end(id_)

    def _shorten(self, topic: str, at_ms: int) -> None:
        """Forget what has left the window."""
        known = self._topics.get(topic)
        oldest_ms = at_ms - self._max_age_ms
        while known and (
            len(known) > self._max_count or next(iter(known.values()))[1] < oldest_ms
        ):
            known.popitem(last=False)

    # The journal's side

    def collect(self) -> list[tuple[bytes, bool]]:
        closed = self._rows.close()
        return [(_encode(closed), True)] if closed else []

    def taken_back(self) -> None:
        lost = self._rows.take_back()
        for row in lost[::-1]:
            if not row[1]:  # the topic is gone all the same
                self._rows.add(row)
        for topic, ids, offsets, _ in lost:
            known = self._topics.get(topic, OrderedDict())
            for id_, offset in zip(ids, offsets, strict=True):
                if known.get(id_, (-1,))[0] == offset:
                    del known[id_]

    def snapshot(self) -> bytes:
        rows: list[DedupRow] = []
        for topic, known in self._topics.items():
            for id_, (offset, at_ms) in known.items():
                if rows and rows[-1][0] == topic and rows[-1][3] == at_ms:
                    rows[-1][1].append(id_)
                    rows[-1][2].append(offset)
                else:
                    rows.append((topic, [id_], [offset], at_ms))
        return _encode(rows)

    def restore(self, snapshot: bytes) -> None:
        self._read(snapshot)

    def replay(self, record: Record) -> None:
        self._read(record.data)

    def _read(self, data: bytes) -> None:
        for row in _decode(data):
            self._put(row)
            self._shorten(row[0], row[3])
