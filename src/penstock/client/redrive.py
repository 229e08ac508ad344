"""Plans for many dead letters: all of them listed, grouped, sent again or dropped.

The desk answers a page at a time; a plan goes through the pages. It ends with the last
letter there was when it began: letters that come meanwhile, perhaps of the very events
that were sent again, are left for the next time. What was done is done: a plan that is
interrupted goes on where it was when it is carried out again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import msgspec

from penstock.client.plan import MAX_ROWS, Pause, Plan, first_rows, question
from penstock.desk.views.errors import ErrorFilter, ErrorGroup, ErrorGroupPage
from penstock.desk.views.letters import (
    Done,
    DonePage,
    Filter,
    GroupPage,
    GroupRow,
    LetterPage,
    LetterRow,
    LetterView,
    Status,
    alike,
)
from penstock.errors import InvalidOption

# With a rate, so much is sent at once: little enough not to be a burst.
SLICE_S = 0.1

GroupedRow = TypeVar("GroupedRow", GroupRow, ErrorGroup)
Which = Filter | Sequence[int] | None
"""Letters by filter or by number; None: all of them."""


@dataclass(slots=True)
class Progress:
    """How far a plan has come. ``total`` is what there was when it began."""

    total: int | None = None
    done: int = 0
    """Done now, by this plan."""
    before: int = 0
    """Found done already."""
    failed: int = 0
    results: list[Done] = field(default_factory=list)
    """What became of the letters of the last page."""

    @property
    def seen(self) -> int:
        return self.done + self.before + self.failed

    def add(self, results: list[Done]) -> None:
        self.results = results
        for one in results:
            if not one.done:
                self.failed += 1
            elif one.fresh:
                self.done += 1
            else:
                self.before += 1


OnProgress = Callable[[Progress], object]


class RedrivePace:
    """So many letters a second, evenly: the next may go when the last had its time."""

    def __init__(
        self, rate: float | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if rate is not None and not 0 < rate < float("inf"):
            raise InvalidOption("rate", rate, "above 0")
        self._rate = rate
        self._clock = clock
        self._next_s = clock()

    @property
    def rows(self) -> int:
        """Letters of one question."""
        if self._rate is None:
            return MAX_ROWS
        return min(MAX_ROWS, max(1, int(self._rate * SLICE_S)))

    def wait(self) -> Plan[None]:
        """Pause until more may go."""
        left_s = self._next_s - self._clock()
        if self._rate is not None and left_s > 0:
            yield Pause(left_s)
        # A redrive that is late may catch up a little, not all of it at once.
        self._next_s = max(self._next_s, self._clock() - SLICE_S)

    def spend(self, letters: int) -> None:
        """So many were sent since the wait."""
        if self._rate is not None:
            self._next_s += letters / self._rate


def list_all(
    filter: Filter | None = None,
    *,
    start: int = 0,
    count: int | None = None,
    closed: bool = False,
    status: Status | None = None,
) -> Plan[list[LetterRow]]:
    """Letters, the oldest first; not more than ``count``."""
    return first_rows(
        LetterPage,
        "dead-letters",
        lambda page: page.letters,
        count=count,
        start=start,
        filter=filter,
        closed=closed,
        status=status,
    )


def groups(filter: Filter | None = None) -> Plan[list[GroupRow]]:
    """Open letters that are alike, counted together; the largest group first."""
    found, _ = yield from _grouped(filter)
    return found


def _grouped(filter: Filter | None) -> Plan[tuple[list[GroupRow], int]]:
    """The groups, and the number behind the last letter that was looked at."""
    merged = _Merged[GroupRow](("subscriber", "topic", "gateway", "kind", "pattern"))
    end = yield from merged.fill(GroupPage, "dead-letters.groups", filter)
    return merged.rows(), end


def error_groups(filter: ErrorFilter | None = None) -> Plan[list[ErrorGroup]]:
    """Failed tries by subscriber, topic and kind; the largest group first."""
    merged = _Merged[ErrorGroup](("subscriber", "topic", "kind"))
    yield from merged.fill(ErrorGroupPage, "errors.groups", filter)
    return merged.rows()


def like(number: int) -> Plan[Filter]:
    """The filter that takes the letters that are like this one."""
    letter = yield from question(LetterView, "dead-letters.show", number=number)
    return alike(letter)


def republish_all(
    which: Which = None,
    *,
    rate: float | None = None,
    on_progress: OnProgress | None = None,
    dry_run: bool = False,
    by: str = "",
    clock: Callable[[], float] = time.monotonic,
) -> Plan[Progress]:
    """Send the events of open letters again, at most ``rate`` of them a second."""
    more = {"dry_run": dry_run, "by": by}
    work = _Work("dead-letters.republish", more, RedrivePace(rate, clock), on_progress)
    return work.plan(which)


def drop_all(
    which: Which = None,
    *,
    reason: str,
    on_progress: OnProgress | None = None,
    dry_run: bool = False,
    by: str = "",
) -> Plan[Progress]:
    """Close open letters, for a reason."""
    more = {"dry_run": dry_run, "by": by, "reason": reason}
    return _Work("dead-letters.drop", more, RedrivePace(None), on_progress).plan(which)


class _Work:
    """One verb for many letters, a page at a time."""

    def __init__(
        self,
        verb: str,
        more: Mapping[str, object],
        pace: RedrivePace,
        on_progress: OnProgress | None,
    ) -> None:
        self._verb = verb
        self._more = more
        self._pace = pace
        self._on_progress = on_progress
        self._progress = Progress()

    def plan(self, which: Which) -> Plan[Progress]:
        if which is None or isinstance(which, Filter):
            return self._by_filter(which or Filter())
        return self._by_number(list(dict.fromkeys(which)))

    def _by_number(self, numbers: list[int]) -> Plan[Progress]:
        self._progress.total = len(numbers)
        rows = self._pace.rows
        for first in range(0, len(numbers), rows):
            yield from self._page(numbers=numbers[first : first + rows])
        return self._progress

    def _by_filter(self, filter: Filter) -> Plan[Progress]:
        found, end = yield from _grouped(filter)
        if self._verb == "dead-letters.republish":  # raw input has nowhere to go
            found = [one for one in found if one.subscriber is not None]
        self._progress.total = sum(one.count for one in found)
        next_ = min((one.first for one in found), default=None)
        while next_ is not None and self._progress.seen < self._progress.total:
            page = yield from self._page(
                filter=filter, start=next_, end=end, limit=self._pace.rows
            )
            next_ = page.next
        return self._progress

    def _page(self, **which: object) -> Plan[DonePage]:
        yield from self._pace.wait()
        page = yield from question(DonePage, self._verb, **which, **self._more)
        self._progress.add(page.results)
        self._pace.spend(sum(one.fresh for one in page.results))
        if self._on_progress is not None:
            self._on_progress(self._progress)
        return page


class _Groups(Protocol[GroupedRow]):
    @property
    def groups(self) -> list[GroupedRow]: ...
    @property
    def next(self) -> int | None: ...
    @property
    def end(self) -> int: ...


class _Merged(dict[tuple[object, ...], GroupedRow]):
    """Groups of several pages, those with the same key as one."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self._key = key

    def fill(
        self, view: type[_Groups[GroupedRow]], verb: str, filter: object
    ) -> Plan[int]:
        """Add the groups of all pages; the number behind what was looked at."""
        start, end = 0, None
        while True:
            page = yield from question(view, verb, filter=filter, start=start, end=end)
            self.add(page.groups)
            end = page.end
            if page.next is None:
                return end
            start = page.next

    def add(self, groups: Iterable[GroupedRow]) -> None:
        for group in groups:
            key = tuple(getattr(group, name) for name in self._key)
            known = self.get(key)
            self[key] = group if known is None else _joined(known, group)

    def rows(self) -> list[GroupedRow]:
        return sorted(self.values(), key=lambda one: (-one.count, one.example))


def _joined(known: GroupedRow, group: GroupedRow) -> GroupedRow:
    return msgspec.structs.replace(
        known,
        count=known.count + group.count,
        first_ms=min(known.first_ms, group.first_ms),
        last_ms=max(known.last_ms, group.last_ms),
        example=group.example,
    )
