"""Where a subscription stands in its topic: the events it has never sent.

In log order there is one cursor for the topic. In priority order there is one per
level, so that the highest level goes first over the whole backlog and events in front
of a cursor need not be listed. While a topic has seen no priority the two are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.delivery.levels import Levels
from penstock.delivery.owed import Portion
from penstock.delivery.pages import Page, Pages
from penstock.model.policy import Order

# The level of a cursor in log order.
ALL = -1
# Where no event ever is: a subscription that begins there gets only what is added back.
NEVER = 1 << 62
# A consumer gets about this many bytes at once.
TAKE_BYTES = 1 << 18

GetLevels = Callable[[str], Levels | None]


class Cursor:
    def __init__(self, topic: str, order: Order, start: int) -> None:
        self._topic = topic
        self._logs = order != "priority"
        self.start = start
        """Where a level begins that has no place yet."""
        self.places: dict[int, int] = {}
        """Level -> the first offset that was not sent."""
        self.sent = 0
        """How many events were sent for the first time."""
        self._pages: Pages
        self._levels: GetLevels

    def wire(self, pages: Pages, levels: GetLevels) -> None:
        """Say where events come from."""
        self._pages, self._levels = pages, levels

    @property
    def plain(self) -> bool:
        """Whether events go as they lie in the log."""
        return self._logs or self._levels(self._topic) is None

    @property
    def plain_level(self) -> int:
        return ALL if self._logs else 0

    def level_of(self, priority: int) -> int:
        return ALL if self._logs else priority

    def end(self) -> int:
        return self._pages.end(self._topic)

    def unsent(self) -> int:
        """How many events were never sent; at most, where some of them are gone."""
        ahead = max(self.end() - self.lowest(), 0)
        if self.plain:
            return ahead
        return min(max(self.end() - self.start - self.sent, 0), ahead)

    def unsent_plainly(self, start: int, end: int) -> int:
        """The same where ``plain``, of a topic that begins and ends there: at once."""
        place = self.places.get(ALL if self._logs else 0, self.start)
        return max(end - (place if place > start else start), 0)

    def lowest(self) -> int:
        """The lowest offset that was never sent; the end if all were."""
        if self.plain:
            return min(self._place(self.plain_level), self.end())
        levels = self._index().levels()
        found = [self._index().next_at(level, self._place(level)) for level in levels]
        return min((one for one in found if one is not None), default=self.end())

    def next(self) -> tuple[int, int] | None:
        """(-level, offset) of the event that is to go first; None at the end."""
        if self.plain:
            level, end = self.plain_level, self.end()
            if self.places.get(level, self.start) >= end:
                return None
            offset = self._place(level)
            return (-level, offset) if offset < end else None
        index = self._index()
        for level in index.levels():
            offset_ = index.next_at(level, self._place(level))
            if offset_ is not None:
                return -level, offset_
        return None

    def runs(self, free: int, room: int = TAKE_BYTES) -> Iterator[Portion]:
        """Up to ``free`` events as they lie in the log, whole pages at a time.

        ``room``: about so many bytes of them.
        """
        level = self.plain_level
        while free > 0 and room > 0:
            place = self._place(level)
            page = self._pages.at(self._topic, place)
            if page is None:
                return
            lo = page.index_of(place)
            size = page.event_bytes
            hi = min(lo + free, len(page), lo + max(room // size, 1))
            free -= hi - lo
            room -= (hi - lo) * size
            behind = page.end if hi == len(page) else page.offset_of(hi)
            # All in front is sent, or gone; of other levels too, whose index went
            # with the last of their events.
            self.places[level], self.sent = behind, behind - self.start
            yield Portion(page, lo, hi, 1)
            if behind >= self.end():
                return

    def pass_to(self, page: Page, index: int) -> None:
        """Send nothing of what follows, up to an event of the page."""
        behind = page.end if index == len(page) else page.offset_of(index)
        self.places[self.plain_level], self.sent = behind, behind - self.start

    def has_passed(self, level: int, offset: int) -> bool:
        """Whether an event of this level is behind the start and in front of here."""
        return self.start <= offset < self._place(level)

    def buries_expired(self) -> bool:
        """Whether events of the topic that expire unsent are to be dead letters."""
        return self._pages.buries_expired(self._topic)

    def pick(self, level: int, offset: int) -> Portion | None:
        """One event as ``next`` named it; None if compaction took it away."""
        found = self.find(offset)
        self.places[level] = offset + 1
        self.sent += 1
        return None if found is None else Portion(found[0], found[1], found[1] + 1, 1)

    def find(self, offset: int) -> tuple[Page, int] | None:
        """The page of an event and its place there; None if it is gone."""
        page = self._pages.at(self._topic, offset)
        if page is None or offset < self._pages.start(self._topic):
            return None
        index = page.index_of(offset)
        return (page, index) if page.offset_of(index) == offset else None

    def seek(self, offset: int) -> None:
        """Begin anew at ``offset``."""
        self.start, self.places, self.sent = offset, {}, 0

    def clamp(self, end: int) -> None:
        """Come back to the end of a topic whose last events were taken back."""
        if self.start < NEVER:
            self.start = min(self.start, end)

    def _place(self, level: int) -> int:
        place = self.places.get(level, self.start)
        return max(place, self._pages.start(self._topic))

    def _index(self) -> Levels:
        index = self._levels(self._topic)
        assert index is not None, "asked for only if the topic has one"
        return index
