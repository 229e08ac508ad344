"""Events that are not to be delivered before a time: when, and to which subscriptions.

Theory. Each topic with delayed events has a heap of (time, offset) and a *mark*, the
(time, offset) up to which delayed events have been let go, in this order. A cursor that
comes to a delayed event compares it with the mark. Up to the mark it is an event like
any other. Behind it the cursor goes on, and the event is *postponed*: nothing is noted
but their number, as what was postponed follows from the cursor and the mark.

When its time has come an event is taken out of the heap, the mark moves to it, and each
subscription whose cursor has passed it has it in its list of what is due
(``Subscription.due``). Cursors that have not come to it yet find it in front of the
mark. So every subscription gets it once, a new one as well, in the order of times.

A delayed event takes 16 bytes here, for all subscriptions together, and 8 bytes in each
subscription that cannot take it at once when it is due.

Crash promise: precious marks, which are in the group of the lists that they belong to;
rebuilt heaps, which checkpoints carry so that a start reads only what came after.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Set
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

import msgspec

from penstock.delivery.kept import Kept
from penstock.log import Batch, BrokerLog, Column, Record

if TYPE_CHECKING:
    from penstock.delivery.subscription import Subscription

# What is let go before others have their turn: a few milliseconds.
PIECE = 2_000
# Time and offset; all there is has one behind this.
DelayMark = tuple[int, int]
BEGINNING: DelayMark = (0, 0)
# Times that may be in the list of times without counting any more.
SPARE = 64


class Heap:
    """(time, offset, priority), the smallest first, 16 bytes each.

    A heap as heapq has it, over two arrays: objects would take four times as much.
    """

    __slots__ = ("_places", "_times")

    def __init__(self, times: bytes = b"", places: bytes = b"") -> None:
        self._times = array("q", times)
        # The offset, and the priority in the lowest byte.
        self._places = array("q", places)

    def __len__(self) -> int:
        return len(self._times)

    @property
    def first_ms(self) -> int:
        return self._times[0]

    @property
    def first(self) -> DelayMark:
        return self._times[0], self._places[0] >> 8

    def packed(self) -> tuple[bytes, bytes]:
        return self._times.tobytes(), self._places.tobytes()

    def push(self, time_ms: int, offset: int, priority: int) -> None:
        place = offset << 8 | priority
        self._times.append(time_ms)
        self._places.append(place)
        self._rise(len(self) - 1, time_ms, place)

    def pop(self) -> tuple[int, int, int]:
        times, places = self._times, self._places
        first = times[0], places[0]
        time_ms, place = times.pop(), places.pop()
        end = len(times)
        if end:
            # Down to the bottom by the smaller branches, then up: as heapq does.
            at, below = 0, 1
            while below < end:
                right = below + 1
                if right < end and (times[right], places[right]) < (
                    times[below],
                    places[below],
                ):
                    below = right
                times[at], places[at] = times[below], places[below]
                at, below = below, 2 * below + 1
            self._rise(at, time_ms, place)
        return first[0], first[1] >> 8, first[1] & 0xFF

    def _rise(self, at: int, time_ms: int, place: int) -> None:
        """Put an entry where it belongs, from a leaf upwards."""
        times, places = self._times, self._places
        while at:
            above = (at - 1) >> 1
            if (times[above], places[above]) <= (time_ms, place):
                break
            times[at], places[at] = times[above], places[above]
            at = above
        times[at], places[at] = time_ms, place


class DueList:
    """Offsets of events that a subscription has postponed and may have now.

    In the order in which they became due, 8 bytes each; by level, as there is a cursor
    for each. ``added`` and ``taken`` are what the journal has not heard of.
    """

    __slots__ = ("_heads", "_lasting", "_offsets", "added", "taken")

    def __init__(self, *, lasting: bool = True) -> None:
        self._lasting = lasting
        """Whether the journal is to hear of it."""
        self._offsets: dict[int, array[int]] = {}
        self._heads: dict[int, int] = {}
        self.added: dict[int, array[int]] = {}
        self.taken: dict[int, int] = {}

    def __len__(self) -> int:
        if not self._offsets:
            return 0
        return sum(map(len, self._offsets.values())) - sum(self._heads.values())

    def __contains__(self, place: tuple[int, int]) -> bool:
        """Whether an offset of a level is among them: it is searched for."""
        level, offset = place
        return offset in self._offsets.get(level, ())[self._heads.get(level, 0) :]

    def add(self, level: int, offset: int) -> None:
        self._offsets.setdefault(level, array("q")).append(offset)
        if self._lasting:
            self.added.setdefault(level, array("q")).append(offset)

    def first(self) -> tuple[int, int] | None:
        """(-level, offset) of the event that is to go first."""
        if not self._offsets:
            return None
        level = max(self._offsets)
        return -level, self._offsets[level][self._heads.get(level, 0)]

    def pop(self, level: int) -> None:
        """Take the first of a level out."""
        if self._lasting:
            self.taken[level] = self.taken.get(level, 0) + 1
        self._drop(level, 1)

    def _drop(self, level: int, count: int) -> None:
        offsets = self._offsets[level]
        head = self._heads.get(level, 0) + count
        if head >= len(offsets):
            del self._offsets[level]
            self._heads.pop(level, None)
        elif head * 2 > len(offsets):
            del offsets[:head]
            self._heads.pop(level, None)
        else:
            self._heads[level] = head

    def lowest(self, default: int) -> int:
        """The lowest offset of all, if it is below the default."""
        return min((min(one) for one in self.listed().values()), default=default)

    def listed(self) -> dict[int, list[int]]:
        """All there is, by level."""
        return {
            level: offsets[self._heads.get(level, 0) :].tolist()
            for level, offsets in self._offsets.items()
        }

    def packed(self) -> dict[int, bytes]:
        """All there is, for a record."""
        return {level: _bytes(offsets) for level, offsets in self.listed().items()}

    def said(self) -> None:
        self.added, self.taken = {}, {}

    def take_up(self, added: Mapping[int, bytes], taken: Mapping[int, int]) -> None:
        """What a record says."""
        for level, packed in added.items():
            self._offsets.setdefault(level, array("q")).frombytes(packed)
        for level, count in taken.items():
            self._drop(level, count)

    def clear(self) -> None:
        self._offsets, self._heads = {}, {}
        self.said()


def _bytes(offsets: Iterable[int]) -> bytes:
    return array("q", offsets).tobytes()


class DelayedTopic(msgspec.Struct, array_like=True, frozen=True):
    """The delayed events of a topic, as far as it was looked at."""

    topic_id: int
    end: int
    mark: DelayMark
    times: bytes
    places: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode_marks = msgspec.msgpack.Decoder(dict[str, DelayMark]).decode
_decode_rows = msgspec.msgpack.Decoder(dict[str, DelayedTopic]).decode

FollowersOf = Callable[[str], "Iterable[Subscription]"]


class Delays(Kept):
    """Owner of the marks of topics with delayed events; see log.Owner."""

    kind = 265

    def __init__(self) -> None:
        self.marks: dict[str, DelayMark] = {}
        self._heaps: dict[str, Heap] = {}
        self._times: list[tuple[int, str]] = []
        """When to look at which topic, and some of the past."""
        self._armed: dict[str, int] = {}
        """Which of these counts for a topic."""
        self._unsaid: dict[str, None] = {}
        self._ends: dict[str, int] = {}
        """How far topics with delayed events were looked at."""
        self._ids: dict[str, int] = {}
        self._log: BrokerLog | None = None

    def wire(self, log: BrokerLog) -> None:
        """Take up the log once it is open; ``committed`` follows for what is new."""
        self._log = log
        for name, id_ in self._ids.items():
            if not log.has_topic(name) or log.topic(name).id != id_:
                self.forget(name)  # another topic of that name, or none
            elif log.topic(name).end_offset < self._ends[name]:
                # It was cut behind the checkpoint: it is looked at from its beginning.
                self._heaps.pop(name, None)
                del self._ends[name]
        self._ids = {}
        for name, heap in list(self._heaps.items()):
            while heap and heap.first <= self.mark(name):
                heap.pop()  # records have let them go since
            if not heap:
                del self._heaps[name]
        self._armed = {name: heap.first_ms for name, heap in self._heaps.items()}
        self._times = [(at_ms, name) for name, at_ms in self._armed.items()]
        heapify(self._times)

    def mark(self, topic: str) -> DelayMark:
        """Up to where the delayed events of a topic are like any other."""
        return self.marks.get(topic, BEGINNING)

    def waiting(self, topic: str) -> int:
        """How many events of a topic are not to be delivered yet."""
        return len(self._heaps.get(topic, ()))

    @property
    def dirty(self) -> bool:
        return bool(self._unsaid)

    def followed(self, topics: Set[str]) -> Set[str]:
        return frozenset()

    def committed(self, topic: str, batch: Batch) -> None:
        if Column.NOT_BEFORE not in batch.columns():
            return
        times = batch.not_before()
        if not any(times) or batch.end_offset <= self._ends.get(topic, 0):
            return
        heap = self._heaps.get(topic)
        if heap is None:
            heap = self._heaps[topic] = Heap()
        mark, first = self.mark(topic), heap.first_ms if heap else None
        end = self._ends.get(topic, 0)
        rows = zip(times, batch.offsets(), batch.priorities(), strict=True)
        for time_ms, offset, priority in rows:
            if time_ms and offset >= end and (time_ms, offset) > mark:
                heap.push(time_ms, offset, priority)
        self._ends[topic] = batch.end_offset
        if heap and heap.first_ms != first:
            self._look_at(topic, heap.first_ms)

    def _look_at(self, topic: str, time_ms: int) -> None:
        """Have the events of a topic let go at a time; an earlier one replaces it."""
        self._armed[topic] = time_ms
        heappush(self._times, (time_ms, topic))
        if len(self._times) > 2 * len(self._armed) + SPARE:
            self._times = [(at_ms, name) for name, at_ms in self._armed.items()]
            heapify(self._times)

    def next_s(self) -> float | None:
        """When the next event is due."""
        return self._times[0][0] / 1000 if self._times else None

    def let_go(self, now_ms: int, followers: FollowersOf) -> list[Subscription]:
        """Move marks up to now, a piece at a time; who has something due then."""
        due: dict[Subscription, None] = {}
        room = PIECE
        while room > 0 and self._times and self._times[0][0] <= now_ms:
            at_ms, topic = heappop(self._times)
            heap = self._heaps.get(topic)
            if heap is None or self._armed.get(topic) != at_ms:
                continue  # the topic is gone, or was to be looked at before
            room -= self._let_go(topic, heap, now_ms, room, followers, due)
            if heap:
                self._look_at(topic, heap.first_ms)
            else:
                del self._heaps[topic], self._armed[topic]
        return list(due)

    def _let_go(
        self,
        topic: str,
        heap: Heap,
        now_ms: int,
        room: int,
        followers: FollowersOf,
        due: dict[Subscription, None],
    ) -> int:
        mark, count = self.mark(topic), 0
        subscriptions = list(followers(topic))
        while heap and heap.first_ms <= now_ms and count < room:
            time_ms, offset, priority = heap.pop()
            mark = time_ms, offset
            count += 1
            for one in subscriptions:
                if one.let_due(offset, priority):
                    due[one] = None
        if mark != self.mark(topic):
            self.marks[topic] = mark
            self._unsaid[topic] = None
        return count

    def forget(self, topic: str) -> None:
        self.marks.pop(topic, None)
        self._heaps.pop(topic, None)
        self._armed.pop(topic, None)
        self._unsaid.pop(topic, None)
        self._ends.pop(topic, None)

    # The journal's side

    def collect(self) -> list[tuple[bytes, bool]]:
        if not self._unsaid:
            return []
        data = _encode({topic: self.marks[topic] for topic in self._unsaid})
        self._unsaid.clear()
        return [(data, False)]

    def taken_back(self) -> None:
        """Say all marks again: the lists of subscriptions are said again as well."""
        self._unsaid = dict.fromkeys(self.marks)

    def snapshot(self) -> bytes:
        assert self._log is not None, "checkpoints come after wire"
        rows = {}
        for topic in self.marks.keys() | self._ends.keys():
            if self._log.has_topic(topic):
                heap = self._heaps.get(topic, Heap())
                id_ = self._log.topic(topic).id
                end = self._ends.get(topic, 0)
                rows[topic] = DelayedTopic(id_, end, self.mark(topic), *heap.packed())
        return _encode(rows)

    def restore(self, snapshot: bytes) -> None:
        for topic, row in _decode_rows(snapshot).items():
            self.marks[topic] = row.mark
            self._ids[topic], self._ends[topic] = row.topic_id, row.end
            if row.times:
                self._heaps[topic] = Heap(row.times, row.places)

    def replay(self, record: Record) -> None:
        self.marks.update(_decode_marks(record.data))
