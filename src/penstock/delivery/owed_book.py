"""What a subscription owes: single events, and runs of events in flight.

Most deliveries are a run of neighbours, sent once, to one consumer, and settled in
about that order. A run costs the same however long it is; an event leaves it to become
a single one when something of its own happens to it. To the outside this is a mapping
of offsets; ``get`` and ``singles`` give what may be changed, ``values`` only tells.

For the journal: runs are few, and every record lists all of them. So an event that
leaves a run is ``touched``, unless it leaves by being settled.

``move`` is the only place that changes the state of an event. It follows the table of
states.py, and keeps what depends on states: how much is in flight or paused, and what
is to be sent again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from penstock.delivery.isolation import SendAgain
from penstock.delivery.key_order import KeyOrder
from penstock.delivery.owed import Owed
from penstock.delivery.states import (
    IN_FLIGHT,
    MOVES,
    PAUSED,
    QUEUED,
    SENT,
    SETTLED,
    Move,
)

if TYPE_CHECKING:
    from penstock.delivery.consumer import Consumer

_LO = attrgetter("lo")


class SentRun:
    """Events ``lo`` to ``hi`` (exclusive) in flight for the first time."""

    __slots__ = ("due_s", "hi", "holder", "level", "lo")

    def __init__(
        self, lo: int, hi: int, level: int, due_s: float, holder: Consumer
    ) -> None:
        self.lo = lo
        self.hi = hi
        self.level = level
        self.due_s = due_s
        self.holder = holder

    def event(self, offset: int) -> Owed:
        """One of them as it stands."""
        one = Owed(offset, self.level)
        one.state = SENT
        one.tries = 1
        one.due_s = self.due_s
        one.holder = self.holder
        return one


class OwedBook:
    __slots__ = (
        "_in_runs",
        "_out",
        "_runs",
        "_singles",
        "amended",
        "erred",
        "paused",
        "queue",
        "touched",
    )

    def __init__(self) -> None:
        self._singles: dict[int, Owed] = {}
        self._out = 0
        self._runs: list[SentRun] = []
        self._in_runs = 0
        self.paused = 0
        """How many events wait for the time of their next try."""
        self.queue: SendAgain | KeyOrder = SendAgain()
        self.touched: dict[int, None] = {}
        """Single events whose state the journal does not know as it is."""
        self.erred: dict[int, None] = {}
        """Those of them whose failures it does not know."""
        self.amended: dict[int, None] = {}
        """Those of which it does not know whether they are amended."""

    def __len__(self) -> int:
        return len(self._singles) + self._in_runs

    def __contains__(self, offset: int) -> bool:
        return offset in self._singles or self._find(offset) is not None

    def __iter__(self) -> Iterator[int]:
        yield from self._singles
        for run in self._runs:
            yield from range(run.lo, run.hi)

    def __getitem__(self, offset: int) -> Owed:
        """How an event stands; not to be changed."""
        found = self._singles.get(offset)
        if found is not None:
            return found
        run = self._find(offset)
        if run is None:
            raise KeyError(offset)
        return run.event(offset)

    def values(self) -> Iterator[Owed]:
        """How every event stands; not to be changed."""
        yield from self._singles.values()
        for run in self._runs:
            yield from map(run.event, range(run.lo, run.hi))

    def singles(self) -> list[Owed]:
        """The events that something happened to."""
        return list(self._singles.values())

    @property
    def runs(self) -> list[tuple[int, int, int]]:
        """First, end and level of every run."""
        return [(run.lo, run.hi, run.level) for run in self._runs]

    def single(self, offset: int) -> Owed | None:
        """An event that something happened to; None if there is none."""
        return self._singles.get(offset)

    def said(self, *, everything: bool = False) -> None:
        """The journal knows what was touched now, or all there is."""
        for offset in self._singles if everything else self.touched:
            if (one := self._singles.get(offset)) is not None:
                one.recorded = True
        self.touched.clear()
        self.erred.clear()
        self.amended.clear()

    def snapped(self) -> None:
        """A snapshot has all there is: whatever ends later has to be said."""
        for one in self._singles.values():
            one.recorded = True

    def lowest(self, default: int) -> int:
        """The lowest offset owed, if it is below the default."""
        first = self._runs[0].lo if self._runs else default
        return min(first, default, min(self._singles, default=default))

    def holder_of(self, offset: int) -> Consumer | None:
        """Who has the event in flight."""
        found = self._singles.get(offset)
        if found is not None:
            return found.holder
        run = self._find(offset)
        return None if run is None else run.holder

    def get(self, offset: int) -> Owed | None:
        """An event, to be changed: it stands for itself from now on."""
        found = self._singles.get(offset)
        if found is None and (run := self._find(offset)) is not None:
            found = run.event(offset)
            self._cut(run, offset, offset + 1)
            self.add(found)
            self.touched[offset] = None
        return found

    @property
    def in_flight(self) -> int:
        """How many events are with consumers."""
        return self._out + self._in_runs

    def add(self, one: Owed) -> None:
        """Owe a single event, in the state that it has."""
        self._singles[one.offset] = one
        self._out += one.state in IN_FLIGHT

    def move(
        self,
        one: Owed,
        move: Move,
        due_s: float = 0.0,
        holder: Consumer | None = None,
    ) -> None:
        """Let a single event take a step of the table; then due, and with a consumer.

        What is settled is forgotten. Raises KeyError for a step that there is not.
        """
        before = one.state
        after = one.state = MOVES[before, move]
        one.due_s, one.holder = due_s, holder
        self._out += (after in IN_FLIGHT) - (before in IN_FLIGHT)
        self.paused += (after is PAUSED) - (before is PAUSED)
        if after is SETTLED:
            self._settled(one)
        self.queue.moved(one, before)

    def _settled(self, one: Owed) -> None:
        offset = one.offset
        self.forget(offset)
        if one.recorded:
            self.touched[offset] = None
        else:
            self.touched.pop(offset, None)

    def line_up(self, move_of: Callable[[Owed], Move]) -> None:
        """Queue anew all that is to be sent again, each by the move it is to take."""
        for one in self._singles.values():
            if one.state in QUEUED:
                one.state = MOVES[one.state, move_of(one)]
        self.queue.line_up(self.singles())

    def add_run(self, run: SentRun) -> None:
        """Runs come in the order of their offsets."""
        last = self._runs[-1] if self._runs else None
        self._in_runs += run.hi - run.lo
        if (
            last is not None
            and last.hi == run.lo
            and last.holder is run.holder
            and last.due_s == run.due_s
            and last.level == run.level
        ):
            last.hi = run.hi
        else:
            self._runs.append(run)

    def forget(self, offset: int) -> None:
        """Owe a single event no more, as the journal says or after it was settled."""
        one = self._singles.pop(offset, None)
        if one is not None:
            self._out -= one.state in IN_FLIGHT
        if self.erred:
            self.erred.pop(offset, None)
        if self.amended:
            self.amended.pop(offset, None)

    def settle(self, offset: int) -> bool:
        """Take an event out of its run; False if it is in none."""
        run = self._find(offset)
        if run is None:
            return False
        self._cut(run, offset, offset + 1)
        return True

    def covers(self, lo: int, hi: int, holder: Consumer) -> bool:
        """Whether one run of the holder has all of these."""
        run = self._find(lo)
        return run is not None and hi <= run.hi and run.holder is holder

    def settle_range(self, lo: int, hi: int, holder: Consumer) -> int:
        """Take what the holder has between the two out of runs; how many those were."""
        before = self._in_runs
        at = max(bisect_right(self._runs, lo, key=_LO) - 1, 0)
        for run in self._runs[at:]:
            if run.lo >= hi:
                break
            if run.hi > lo and run.holder is holder:
                self._cut(run, max(lo, run.lo), min(hi, run.hi))
        return before - self._in_runs

    def singles_of(self, offsets: Sequence[int]) -> list[int]:
        """Those of the offsets that stand for themselves."""
        singles = self._singles
        return [offset for offset in offsets if offset in singles] if singles else []

    def break_up(self, which: Iterable[SentRun]) -> list[Owed]:
        """Let the events of runs stand for themselves."""
        events: list[Owed] = []
        for run in list(which):
            self._runs.remove(run)
            self._in_runs -= run.hi - run.lo
            events += map(run.event, range(run.lo, run.hi))
        for one in events:
            self.add(one)
            self.touched[one.offset] = None
        return events

    def held_by(self, holder: Consumer) -> list[Owed]:
        """What a consumer has in flight, each event for itself."""
        self.break_up([run for run in self._runs if run.holder is holder])
        return [one for one in self._singles.values() if one.holder is holder]

    def count_of(self, holder: Consumer) -> int:
        """How many events a consumer has in flight."""
        in_runs = sum(run.hi - run.lo for run in self._runs if run.holder is holder)
        return in_runs + sum(o.holder is holder for o in self._singles.values())

    def due(self, now_s: float) -> list[Owed]:
        """Events whose moment has come, each for itself."""
        self.break_up([r for r in self._runs if r.due_s and r.due_s <= now_s])
        return [o for o in self._singles.values() if o.due_s and o.due_s <= now_s]

    def shift(self, seconds: float) -> None:
        """Move every moment at which something is due: the clock was set."""
        for one in self._singles.values():
            if one.due_s:
                one.due_s += seconds
        for run in self._runs:
            if run.due_s:
                run.due_s += seconds

    def next_due_s(self) -> float | None:
        """The earliest moment at which something runs out of time."""
        moments = [one.due_s for one in self._singles.values() if one.due_s]
        moments += [run.due_s for run in self._runs if run.due_s]
        return min(moments, default=None)

    def clear(self) -> None:
        """Owe nothing."""
        recorded = [o for o, one in self._singles.items() if one.recorded]
        self.touched = dict.fromkeys(recorded)
        self.erred.clear()
        self.amended.clear()
        self._singles.clear()
        self._runs.clear()
        self._in_runs = self._out = self.paused = 0
        self.queue.clear()

    def _find(self, offset: int) -> SentRun | None:
        at = bisect_right(self._runs, offset, key=_LO) - 1
        if at < 0:
            return None
        run = self._runs[at]
        return run if offset < run.hi else None

    def _cut(self, run: SentRun, lo: int, hi: int) -> None:
        """Take a part out of a run, which may leave two."""
        self._in_runs -= hi - lo
        if lo == run.lo and hi == run.hi:
            self._runs.remove(run)
        elif lo == run.lo:
            run.lo = hi
        elif hi == run.hi:
            run.hi = lo
        else:
            rest = SentRun(hi, run.hi, run.level, run.due_s, run.holder)
            run.hi = lo
            self._runs.insert(self._runs.index(run) + 1, rest)
