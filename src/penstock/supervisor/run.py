"""``penstock up``: start the parts in order, keep them running, end them in order.

One thread, one look at everything five times a second. A part that dies is started
again; one that cannot even start the first time ends everything, with its own words.
At the end the source stops first, then each stage works off what it has, and the books
are compared.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import cast

from penstock.client import Client, connect
from penstock.errors import ClientError, PartFailed, StoreError, StoreTaken
from penstock.files import Files, replace_file
from penstock.store.store import open_store
from penstock.supervisor.accounts import Account, Stored, accounts, behind, idle
from penstock.supervisor.alone import alone
from penstock.supervisor.figures import Figures, Row, counted, letters_of
from penstock.supervisor.part import Part, Places, told
from penstock.supervisor.plan import (
    COLLECTIONS,
    STREAMS,
    Ports,
    Wanted,
    first_parts,
    other_parts,
    ports_of,
    topics,
)
from penstock.supervisor.process import Process, State
from penstock.supervisor.sums import Sums
from penstock.supervisor.table import Display

LOOK_S = 0.2
ASK_S = 1.0
# A broker that does not answer is not waited for: there is more to look at.
ANSWER_S = 10.0
# Stages that work off what they have are given up when nothing moves for so long:
# Spark takes minutes to come back where much else runs.
DRAIN_S = 300.0
# And whatever moves, it does not take longer.
MOST_S = 3600.0
# How long parts may take to end, and then those that they need.
GRACE_S = 30.0
NEEDED = ("broker", "store")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run. ``accounts`` are empty if a signal has ended it."""

    rows: list[Row]
    accounts: list[Account]
    seconds: float
    unfinished: list[str]
    """Stages that had something left to do."""
    over: bool = False
    """The streams have an end, and it was received."""

    @property
    def good(self) -> bool:
        """Whether every stage did something and nothing is missing."""
        if self.interrupted:
            return False
        wrong = any(not one.right for one in self.accounts)
        return not (wrong or self.unfinished or self.idle)

    @property
    def idle(self) -> list[str]:
        """Stages that did nothing; a source that an earlier run has read need not."""
        return [one for one in idle(self.rows) if one != "source" or not self.over]

    @property
    def interrupted(self) -> bool:
        """Whether it was ended before all was worked off."""
        return not self.accounts


class Up:
    def __init__(
        self,
        wanted: Wanted,
        places: Places,
        display: Display,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wanted = wanted
        self._places = places
        self._display = display
        self._clock = clock
        self._processes: list[Process] = []
        self._figures = Figures()
        self._sums = Sums()
        self._server = ""
        self._held = -1
        self._client: Client | None = None
        self._asked_s = float("-inf")
        self._began_s = 0.0
        self._stopping = False
        self._draining = False
        self._store = wanted.store or ""

    def run(self, for_s: float | None) -> Outcome:
        """Until a signal, or until all is worked off that came in ``for_s``.

        A source that ends does so, too. The time counts from when every part is ready.
        Raises PartFailed.
        """
        self._places.make()
        with alone(self._places) as held, self._signals(), self._display:
            self._held = held
            self._began_s = self._clock()
            try:
                self._begin()
                end_s = float("inf") if for_s is None else self._clock() + for_s
                self._look_until(lambda: self._clock() >= end_s or self._all_came())
                return self._outcome([], []) if self._stopping else self._worked_off()
            finally:
                self._end()

    def stop(self, *_: object) -> None:
        self._stopping = True

    # The beginning

    def _begin(self) -> None:
        self._places.sweep()
        self._add(first_parts(self._wanted, self._places))
        self._look_until(self._all_ready)
        if self._stopping:
            return
        ports = self._stay()
        if not self._store and self._wanted.spark:
            self._store = str(self._process("store").ready["url"])
        if self._wanted.spark:
            self._prepare()
        self._server = f"127.0.0.1:{ports.native}"
        _make(self._server, topics(self._wanted))
        self._add(
            other_parts(
                *(self._wanted, self._places),
                server=self._server,
                tweets=f"http://127.0.0.1:{ports.tweets}",
                store=self._store,
            )
        )
        self._look_until(self._all_ready)

    def _all_ready(self) -> bool:
        return all(one.is_ready for one in self._processes)

    def _stay(self) -> Ports:
        """Have the first parts where they are now, however often they are started."""
        told = {one.part.name: one.ready for one in self._processes}
        ports = ports_of(told, self._wanted.ports)
        parts = first_parts(replace(self._wanted, ports=ports), self._places)
        for process, part in zip(self._processes, parts, strict=True):
            process.part = part
        return ports

    def _prepare(self) -> None:
        """Have the collections, and know what was in them before the first run."""
        with open_store(self._store) as store:
            store.prepare(COLLECTIONS)
            if not self._places.before.exists():
                found = {name: store.count(name) for name in COLLECTIONS}
                if any(found.values()):
                    raise StoreTaken(store.place, found)
                data = json.dumps(found).encode() + b"\n"
                replace_file(Files(), str(self._places.before), data)

    def _add(self, parts: Sequence[Part]) -> None:
        self._processes += [
            Process(one, self._places, self._clock, inherits=(self._held,))
            for one in parts
        ]

    def _process(self, name: str) -> Process:
        return next(one for one in self._processes if one.part.name == name)

    # The middle

    def _look_until(self, done: Callable[[], bool]) -> None:
        while not self._stopping:
            self._look()
            if done():
                return
            time.sleep(LOOK_S)

    def _look(self) -> None:
        ready = {one.part.name for one in self._processes if one.is_ready}
        for one in self._processes:
            startable = ready.issuperset(one.part.needs)
            if one.state is State.WAITING and startable:
                one.start()
            ran = one.pid is not None
            one.look(startable=startable)
            died = ran and one.state is State.PAUSED
            if died and startable and not one.was_ready:
                raise PartFailed(one.part.name, one.exit_code or 0, one.last_line())
        now_s = self._clock()
        if now_s - self._asked_s >= ASK_S:
            self._asked_s = now_s
            self._ask()
            rows = self._figures.rows(self._processes, now_s)
            self._display.show(rows, self._heading(now_s), now_s)

    def _all_came(self) -> bool:
        """Whether the streams have an end, and it has been received."""
        if self._wanted.count is None:
            return False
        received = told(self._places.status("ingest")).get("events")
        most = self._wanted.count * len(STREAMS)
        return isinstance(received, int) and received >= most

    def _ask(self) -> None:
        """Ask the broker, if it is there; what it said last counts otherwise."""
        if not self._server:
            return
        try:
            if self._client is None:
                self._client = connect(self._server, name="up", timeout_s=ANSWER_S)
            self._figures.counted = counted(self._client)
        except ClientError:
            self._hang_up()

    def _hang_up(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(ClientError):
                client.close()

    def _heading(self, now_s: float) -> str:
        what = ", working off what is left" if self._draining else ""
        return f"penstock up, {now_s - self._began_s:.0f} s{what}"

    # The end

    def _worked_off(self) -> Outcome:
        """Let everything that is under way arrive, and compare the books."""
        self._draining = True
        self._process("source").tell_to_end()
        self._process("source").wait(GRACE_S)
        quiet = _Quiet(self._clock())
        limit_s = self._clock() + MOST_S
        found: list[Account] = []

        def done() -> bool:
            over = quiet.look(self._rows(), self._clock())
            now_s = self._clock()
            stuck = now_s - quiet.moved_s >= DRAIN_S or now_s >= limit_s
            if not (over or stuck):
                return False
            # Statistics are told some seconds after the last of their tweets.
            quiet.again()
            found[:] = self._accounts()
            return stuck or all(one.right for one in found)

        self._look_until(done)
        if self._stopping:
            return self._outcome([], [])
        return self._outcome(found, behind(self._rows()))

    def _rows(self) -> list[Row]:
        return self._figures.rows(self._processes, self._clock())

    def _accounts(self) -> list[Account]:
        self._ask()
        statuses = {one.part.name: one.status for one in self._processes}
        stored = self._stored() if self._wanted.spark else None
        return accounts(
            *(statuses, self._figures.counted, self._sums, stored),
            letters=self._letters(),
        )

    def _letters(self) -> int:
        """Dead letters of what came in, as the broker has them; -1: it is away."""
        try:
            if self._client is not None:
                return letters_of(self._client, "ingest sse")
        except ClientError:
            self._hang_up()
        return -1

    def _stored(self) -> Stored:
        """What the store has now; what cannot be asked for is counted as -1."""
        before = cast(dict[str, int], told(self._places.before))
        if self._client is not None:
            with suppress(ClientError):
                self._sums.look(self._client, self._figures.counted.topics)
        try:
            with open_store(self._store) as store:
                now = {name: store.count(name) for name in COLLECTIONS}
        except StoreError:
            now = dict.fromkeys(COLLECTIONS, -1)
        return Stored(before, now)

    def _outcome(self, found: list[Account], unfinished: list[str]) -> Outcome:
        now_s = self._clock()
        rows = self._figures.rows(self._processes, now_s)
        seconds = now_s - self._began_s
        return Outcome(rows, found, seconds, unfinished, self._all_came())

    def _end(self) -> None:
        """End the parts, those first that others do not need."""
        self._hang_up()
        needed = [one for one in self._processes if one.part.name in NEEDED]
        for group in ([one for one in self._processes if one not in needed], needed):
            for one in group:
                one.tell_to_end()
            deadline_s = self._clock() + GRACE_S
            for one in group:
                one.wait(max(deadline_s - self._clock(), 0))

    @contextmanager
    def _signals(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _make(server: str, names: Sequence[str]) -> None:
    """Have these topics; raises ClientError."""
    with connect(server, name="up") as client:
        known = counted(client).topics
        for name in names:
            if name not in known:
                client.ask("topics.create", name=name)


class _Quiet:
    """Whether nothing is left to do, and nothing has moved for some looks."""

    LOOKS = 15

    def __init__(self, now_s: float) -> None:
        self.moved_s = now_s
        self._last: list[tuple[str, int | None]] = []
        self._same = 0

    def again(self) -> None:
        """Count the looks anew."""
        self._same = 0

    def look(self, rows: Sequence[Row], now_s: float) -> bool:
        now = [(row.name, row.events) for row in rows]
        self._same += 1
        if now != self._last:
            self._last, self._same, self.moved_s = now, 0, now_s
        return self._same >= self.LOOKS and not behind(rows)
