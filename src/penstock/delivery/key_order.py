"""Consumers that share a subscription by key: each key with one of them at a time.

Where a policy says so (order ``key``) the events of one key form a *lane*. A lane
belongs to one consumer, the one that a hash of the key and the consumers names, and its
events are sent in the order of their offsets. It keeps its consumer while an event of
it is in flight, also if consumers come or go; the next one is sent to the consumer that
the hash names then. So a key is handed over without overlap, and only keys of the
consumer that came or went change hands.

How many events of a lane may be in flight depends on the consumer. One that does not
say that it keeps events in order (``Policy.in_order``) gets them one by one: an event
that fails is tried again before the next of its key is sent. One that says so gets as
many as the window has room for, and keeps those behind a failed one until that was sent
again; then that goes to the same consumer.

Fresh events whose lane is busy, or belongs to another consumer, are read past and are
owed from then on, unsent; there are as many of them as the window has, at most. Events
without a key have no lane: any consumer may get them.

Nothing of this is in the journal: which events are owed is, and lanes follow from them.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from heapq import heappop, heappush
from operator import attrgetter
from typing import TYPE_CHECKING
from zlib import crc32

from penstock.delivery.owed import Owed
from penstock.delivery.states import (
    ALONE,
    IN_FLIGHT,
    QUEUED,
    SETTLED,
    SUSPECT,
    OwedState,
)

if TYPE_CHECKING:
    from penstock.delivery.consumer import Consumer


_OFFSET = attrgetter("offset")


class Lane:
    """The unsettled events of one key."""

    __slots__ = ("consumer", "flying", "key", "last", "waiting")

    def __init__(self, key: bytes) -> None:
        self.key = key
        self.consumer: Consumer | None = None
        """Which has events of it in flight, or is to get the next."""
        self.flying = 0
        self.last = -1
        """The highest offset that was sent to its consumer."""
        self.waiting: list[Owed] = []
        """Those that are not in flight, by offset; the first may be sent if READY."""


class KeyOrder:
    """Which of the unsent events of a subscription goes to which consumer next."""

    __slots__ = (
        "_lanes",
        "_of",
        "_offers",
        "_open",
        "_open_suspects",
        "_pipelined",
        "alone",
        "offered",
    )

    def __init__(self, *, pipelined: bool) -> None:
        self._pipelined = pipelined
        self._lanes: dict[bytes, Lane] = {}
        self._of: dict[int, Lane] = {}
        """The lanes of unsettled events, by offset."""
        self._offers: dict[Consumer, list[int]] = {}
        """What a consumer may take now, by offset; some may have moved on."""
        self._open: list[int] = []
        """What any consumer may take."""
        self._open_suspects: list[int] = []
        """The same, one at a time."""
        self.alone: int | None = None
        """The offset of the suspect that is in flight."""
        self.offered: dict[Consumer, None] = {}
        """Consumers that something was offered to since they were woken."""

    # Consumers

    def joined(self, consumer: Consumer) -> None:
        self._offers[consumer] = []
        self._hand_over()

    def left(self, consumer: Consumer) -> None:
        """A consumer takes nothing any more; what it holds may still be with it."""
        self._offers.pop(consumer, None)
        self.offered.pop(consumer, None)
        self._hand_over()

    def _hand_over(self) -> None:
        for offers in self._offers.values():
            offers.clear()
        for lane in self._lanes.values():
            self._offer(lane)

    def _named(self, key: bytes) -> Consumer | None:
        """The consumer that a key belongs to, of those that are there."""
        offers = self._offers
        if len(offers) < 2:
            return next(iter(offers), None)
        return max(offers, key=lambda one: (crc32(key, one.serial), one.serial))

    # Events

    def enter(self, offset: int, key: bytes | None) -> None:
        """An unsettled event, which is in no lane yet."""
        if key is not None:
            lane = self._lanes.get(key)
            if lane is None:
                lane = self._lanes[key] = Lane(key)
            self._of[offset] = lane

    def goes_to(self, key: bytes | None, consumer: Consumer) -> bool:
        """Whether a fresh event may be sent to this consumer at once."""
        if key is None:
            return True
        lane = self._lanes.get(key)
        if lane is None:
            return self._named(key) is consumer
        return not lane.waiting and self._taker(lane) is consumer

    def sent_first(self, one: Owed, key: bytes | None) -> None:
        """A fresh event was sent, as ``goes_to`` allows."""
        self.enter(one.offset, key)
        lane = self._of.get(one.offset)
        if lane is not None:
            self._send(lane, one)

    def moved(self, one: Owed, before: OwedState) -> None:
        """An event has taken a step of the table."""
        after, offset = one.state, one.offset
        if before is ALONE:
            self.alone = None
        if after is ALONE:
            self.alone = offset
        lane = self._of.get(offset)
        if lane is None:
            if after in QUEUED:
                self._put_open(one)
        else:
            self._moved(lane, one, before)
        if before is ALONE:
            self._offer_suspects()

    def _put_open(self, one: Owed) -> None:
        suspect = one.state is SUSPECT
        heappush(self._open_suspects if suspect else self._open, one.offset)

    def _moved(self, lane: Lane, one: Owed, before: OwedState) -> None:
        was_flying, is_flying = before in IN_FLIGHT, one.state in IN_FLIGHT
        if was_flying:
            lane.flying -= 1
        elif one in lane.waiting:
            lane.waiting.remove(one)
        if is_flying:
            self._send(lane, one)
        elif one.state is SETTLED:
            del self._of[one.offset]
        else:
            insort(lane.waiting, one, key=_OFFSET)
        if lane.waiting:
            self._offer(lane)
        elif not lane.flying:
            self._lanes.pop(lane.key, None)

    def _send(self, lane: Lane, one: Owed) -> None:
        lane.flying += 1
        lane.consumer = one.holder
        lane.last = max(lane.last, one.offset)

    def _taker(self, lane: Lane) -> Consumer | None:
        """The consumer that the next event of a lane may be sent to now."""
        named = self._named(lane.key)
        if not lane.flying:
            lane.last = -1
            return named
        if not self._pipelined or lane.consumer not in self._offers:
            return None
        # Its consumer waits for what is sent again; anything else is handed over.
        again = bool(lane.waiting) and lane.waiting[0].offset < lane.last
        return lane.consumer if again or named is lane.consumer else None

    def _due_to(self, lane: Lane) -> Consumer | None:
        """The consumer that may have the first event of a lane now, if any may."""
        if not lane.waiting:
            return None
        state = lane.waiting[0].state
        if state not in QUEUED or (state is SUSPECT and self.alone is not None):
            return None
        return self._taker(lane)

    def _offer(self, lane: Lane) -> None:
        taker = self._due_to(lane)
        if taker is not None:
            heappush(self._offers[taker], lane.waiting[0].offset)
            self.offered[taker] = None

    def _offer_suspects(self) -> None:
        for lane in self._lanes.values():
            if lane.waiting and lane.waiting[0].state is SUSPECT:
                self._offer(lane)

    def next_for(self, consumer: Consumer) -> int | None:
        """The offset of the next unsent event for a consumer; it is taken out."""
        mine = self._offers.get(consumer)
        while mine:
            lane = self._of.get(mine[0])
            if (
                lane is not None
                and self._due_to(lane) is consumer
                and lane.waiting[0].offset == mine[0]
            ):
                break
            heappop(mine)  # it has moved on since it was offered
        found = [heap for heap in (mine, self._open) if heap]
        if self._open_suspects and self.alone is None:
            found.append(self._open_suspects)
        return heappop(min(found)) if found else None

    def clear(self) -> None:
        """Nothing is owed any more."""
        self._lanes, self._of, self.alone = {}, {}, None
        self._open, self._open_suspects = [], []
        for offers in self._offers.values():
            offers.clear()

    def line_up(self, events: Iterable[Owed]) -> None:
        """Begin anew with these, in the lanes that they have entered."""
        self._open, self._open_suspects, self.alone = [], [], None
        for lane in self._lanes.values():
            lane.waiting, lane.flying = [], 0
        for one in events:
            if one.state is ALONE:
                self.alone = one.offset
            found = self._of.get(one.offset)
            if found is None:
                if one.state in QUEUED:
                    self._put_open(one)
            elif one.state in IN_FLIGHT:
                self._send(found, one)
            else:
                insort(found.waiting, one, key=_OFFSET)
        self._hand_over()
