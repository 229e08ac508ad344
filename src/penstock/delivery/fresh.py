"""What a subscription was never sent: fresh events, and which of them may go now.

Most fresh events follow the cursor. Some are not to be sent yet: those are postponed,
and are due when their time has come (delays.py). Some have expired: those are passed
over and counted, and are dead letters if their topic says so. What was handed to the
subscription once is not looked at again: it does not expire between its tries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.delivery.cursor import TAKE_BYTES, Cursor, GetLevels
from penstock.delivery.delays import BEGINNING, DelayMark, DueList
from penstock.delivery.owed import Portion
from penstock.delivery.pages import Page, Pages
from penstock.model.policy import Order

# Events that are passed over in one call, expired or postponed: some milliseconds.
MAX_LOOKS = 1_000

# (-level, offset): what is to go first is the smallest.
Rank = tuple[int, int]
GetMark = Callable[[str], DelayMark]


def no_delays(topic: str) -> DelayMark:
    """The mark of a topic without delayed events."""
    return BEGINNING


class Fresh:
    __slots__ = (
        "_mark",
        "_topic",
        "postponed",
        "cursor",
        "due",
        "expired",
        "lapsed",
        "passed",
        "unfinished",
    )

    def __init__(
        self, topic: str, order: Order, start: int, *, lasting: bool = True
    ) -> None:
        self._topic = topic
        self._mark: GetMark = no_delays
        self.cursor = Cursor(topic, order, start)
        self.due = DueList(lasting=lasting)
        """What was postponed until its time, and may be taken now."""
        self.postponed = 0
        """How many events the cursor has passed whose time has not come."""
        self.expired = 0
        """How many events expired before they could be sent."""
        self.lapsed: list[tuple[int, int]] = []
        """Offset and level of expired events that are to be dead letters."""
        self.passed = False
        """Whether events were passed over that were not sent."""
        self.unfinished = False
        """Whether it has stopped before it came to the end, for its own reasons."""

    def wire(self, pages: Pages, levels: GetLevels, mark: GetMark) -> None:
        """Say where events come from."""
        self.cursor.wire(pages, levels)
        self._mark = mark

    @property
    def delayed(self) -> int:
        """How many events were postponed, and not taken since."""
        return self.postponed + len(self.due)

    def seek(self, offset: int) -> None:
        """Begin anew at ``offset``."""
        self.due.clear()
        self.postponed = 0
        self.cursor.seek(offset)

    def take_over(self, other: Fresh) -> None:
        """Go on where another subscription stands, and with what it has postponed."""
        mine, its = self.cursor, other.cursor
        mine.start, mine.places, mine.sent = its.start, dict(its.places), its.sent
        self.postponed = other.postponed
        for level, offsets in other.due.listed().items():
            for offset in offsets:
                self.due.add(level, offset)

    def first(self) -> Rank | None:
        """The rank of the event that is to go first; it may prove not to be for now."""
        rank, due = self.cursor.next(), self.due.first()
        return min(rank, due) if rank and due else rank or due

    def pick(self, rank: Rank, now_s: float) -> Portion | None:
        """The event of that rank, unless it is gone, or not to be sent now."""
        if rank == self.due.first():
            return self._pop_due(rank, now_s)
        portion = self.cursor.pick(-rank[0], rank[1])
        if portion is None or not is_timed(portion.page):
            return portion
        return next(iter(self._sendable(portion, now_s)), None)

    def runs(self, free: int, now_s: float) -> Iterator[Portion]:
        """Up to ``free`` events as they lie in the log; first what was postponed."""
        looks, room = 0, TAKE_BYTES
        while free > 0 and (due := self.due.first()) is not None:
            if looks >= MAX_LOOKS or room <= 0:
                self.unfinished = True
                return
            looks += 1
            if (one := self._pop_due(due, now_s)) is not None:
                free -= 1
                room -= one.size
                yield one
        while free > 0:
            skipped = 0
            for portion in self.cursor.runs(free, room):
                if not is_timed(portion.page):
                    free -= portion.hi - portion.lo
                    room -= portion.size
                    yield portion
                    continue
                sent = 0
                for part in self._sendable(portion, now_s):
                    sent += part.hi - part.lo
                    room -= part.size
                    yield part
                free -= sent
                skipped += portion.hi - portion.lo - sent
                if not sent:
                    self._pass_late(portion)
            looks += skipped
            if free > 0 and (looks >= MAX_LOOKS or room <= 0):
                self.unfinished = True
                return
            if not skipped:
                return

    def let_due(self, offset: int, priority: int) -> bool:
        """The time of an event has come: whether it was postponed here."""
        level = self.cursor.level_of(priority)
        if not self.cursor.has_passed(level, offset):
            return False
        self.postponed = max(self.postponed - 1, 0)
        self.due.add(level, offset)
        return True

    def has_expired(self, page: Page, index: int, now_s: float) -> bool:
        """Whether an event is not to be sent any more; then it counts as expired."""
        return not self._unexpired(Portion(page, index, index + 1, 1), now_s)

    def _pop_due(self, due: Rank, now_s: float) -> Portion | None:
        self.due.pop(-due[0])
        self.passed = True
        found = self.cursor.find(due[1])
        if found is None or self.has_expired(*found, now_s):
            return None
        return Portion(found[0], found[1], found[1] + 1, 1)

    def _pass_late(self, portion: Portion) -> None:
        """Postpone at once what follows in the page and is not to be sent yet."""
        page, at = portion.page, portion.hi
        times, mark = page.not_before, self._mark(self._topic)
        if times is None:
            return
        offset_of = page.offset_of
        while at < len(page) and times[at] and (times[at], offset_of(at)) > mark:
            at += 1
        if at > portion.hi:
            self.postponed += at - portion.hi
            self.cursor.pass_to(page, at)

    def _sendable(self, portion: Portion, now_s: float) -> list[Portion]:
        """What of a portion is to be sent now, and not later or never."""
        times = portion.page.not_before
        if times is None:
            return self._unexpired(portion, now_s)
        mark, offset_of = self._mark(self._topic), portion.page.offset_of
        late = [
            bool(times[index]) and (times[index], offset_of(index)) > mark
            for index in range(portion.lo, portion.hi)
        ]
        if any(late):
            self.postponed += sum(late)
            self.passed = True
        found: list[Portion] = []
        for part in _stretches(portion, late):
            found += self._unexpired(part, now_s)
        return found

    def _unexpired(self, portion: Portion, now_s: float) -> list[Portion]:
        """What of a portion has not expired; the others are counted."""
        page, times = portion.page, portion.page.expires
        if times is None:
            return [portion]
        now_ms = now_s * 1000
        over = [0 < at <= now_ms for at in times[portion.lo : portion.hi]]
        if not any(over):
            return [portion]
        self.expired += sum(over)
        self.passed = True
        if self.cursor.buries_expired():
            self.lapsed += [
                (page.offset_of(at), self.cursor.level_of(page.priorities[at]))
                for at, gone in enumerate(over, portion.lo)
                if gone
            ]
        return list(_stretches(portion, over))


def is_timed(page: Page) -> bool:
    """Whether events of a page expire, or are not to be sent before a time."""
    return page.expires is not None or page.not_before is not None


def _stretches(portion: Portion, left_out: list[bool]) -> Iterator[Portion]:
    """The parts of a portion between those that are left out."""
    lo = portion.lo
    for index, out in enumerate([*left_out, True], portion.lo):
        if out:
            if index > lo:
                yield Portion(portion.page, lo, index, portion.tries)
            lo = index + 1
