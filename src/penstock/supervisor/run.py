"""``penstock up``: start the parts in order, keep them running, end them in order.

One thread, one look at everything five times a second. A part that dies is started
again; one that cannot even start the first time ends everything, with its own words.
Tweets begin to come when every other part is ready, or a client asks for them then. At
the end the source makes no more, each stage works off what it has, and the books are
compared.

What a run tells of its stages is a file, replaced with every look at them, which the
broker of the run reads (server/process_info.py) and shows. Crash promise: none, it is
as good as its last second.
"""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from penstock.client.address import SECURE
from penstock.errors import PartFailed, StoreError
from penstock.files import Files, replace_file
from penstock.store.store import open_store, place_of
from penstock.supervisor import kept
from penstock.supervisor.alone import alone
from penstock.supervisor.comparisons import (
    Comparison,
    StoredDocuments,
    accounts,
    behind,
    sent,
)
from penstock.supervisor.desk import BrokerDesk
from penstock.supervisor.figures import StageCounts, StageFigures
from penstock.supervisor.logs import shorten
from penstock.supervisor.outcome import Outcome, Times
from penstock.supervisor.part import Part, Places, read_json
from penstock.supervisor.plan import (
    COLLECTIONS,
    ENGAGEMENTS,
    STREAMS,
    PipelinePorts,
    PipelineRequest,
    first_parts,
    other_parts,
    ports_of,
)
from penstock.supervisor.process import PartState, Process
from penstock.supervisor.sums import Sums
from penstock.supervisor.table import Display


def tell(
    path: Path,
    rows: Sequence[StageCounts],
    processes: Sequence[Process],
    *,
    running: bool,
    resting: bool = False,
    spark: bool = True,
) -> None:
    """Replace the file; a disk that is full costs the view, and not the pipeline."""
    pids = {one.part.name: one.pid for one in processes}
    stages = [
        {**asdict(row), "state": row.state.value, "pid": pids.get(row.name)}
        for row in rows
    ]
    at_ms = time.time_ns() // 1_000_000
    status = {
        "running": running,
        "resting": resting,
        "spark": spark,
        "at_ms": at_ms,
        "stages": stages,
    }
    data = json.dumps(status, ensure_ascii=False).encode() + b"\n"
    try:
        replace_file(Files(), str(path), data, sync=False)
    except OSError:
        return


class BackgroundThread:
    """Begins at once, in a thread that is not waited for when the program ends."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work = work
        self._error: BaseException | None = None
        self._thread = threading.Thread(
            target=self._run, name="background", daemon=True
        )
        self._thread.start()

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    def check(self) -> None:
        """Raises what the work has raised."""
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error


class Quiet:
    """It is quiet when it has been so for some looks."""

    LOOKS = 15

    def __init__(self, now_s: float) -> None:
        self.moved_s = now_s
        """When something happened last."""
        self._last: list[tuple[str, int | None]] = []
        self._same = 0

    def again(self) -> None:
        """Count the looks anew."""
        self._same = 0

    def look(self, rows: Sequence[StageCounts], now_s: float) -> bool:
        now = [(row.name, row.events) for row in rows]
        self._same += 1
        if now != self._last:
            self._last, self._same, self.moved_s = now, 0, now_s
        return self._same >= self.LOOKS and not behind(rows)


LOOK_S = 0.2
ASK_S = 1.0
# Between two looks at how long logs are, and at statistics.
TIDY_S = 10.0
# A store that does not answer when documents are counted: they are counted again.
COUNT_S = 2.0
# Stages that work off what they have are given up when nothing moves for so long:
# Spark takes minutes to come back where much else runs.
DRAIN_S = 300.0
# And whatever moves, it does not take longer.
MOST_S = 3600.0
# How long parts may take to end, and then those that they need.
GRACE_S = 30.0
NEEDED = ("broker", "store")


class Up:
    def __init__(
        self,
        wanted: PipelineRequest,
        places: Places,
        display: Display,
        clock: Callable[[], float] = time.monotonic,
        *,
        show_login: bool = False,
    ) -> None:
        self._wanted = wanted
        self._show_login = show_login
        self._places = places
        self._display = display
        self._clock = clock
        self._processes: list[Process] = []
        self._figures = StageFigures()
        self._sums = Sums(places.sums)
        self._desk: BrokerDesk | None = None
        self._held = -1
        self._asked_s = self._tidied_s = float("-inf")
        self._began_s = clock()
        self._ready_s: float | None = None
        self._drained_s: float | None = None
        self._for_s: float | None = None
        self._resting = wanted.resting
        """The stream is not asked for yet."""
        self._stopping = False
        self._doing = ""
        """What everything else waits for."""
        self._sent: dict[str, int] = {}
        self._store = wanted.store or ""
        self._dashboard = ""
        """Where a browser sees all of it; logged in, if only a terminal is told."""

    def run(self, for_s: float | None) -> Outcome:
        """Until a signal, or until all is worked off that came in ``for_s``.

        A source that ends does so, too. The time counts from when every part is ready.
        Raises PartFailed, StoreError, ClientError.
        """
        self._places.make()
        with alone(self._places) as held, self._signals(), self._display:
            if self._wanted.spark:
                kept.check_store(self._places, self._wanted.store)
            self._held, self._for_s = held, for_s
            self._began_s = self._clock()
            try:
                self._begin()
                return self._outcome([], []) if self._stopping else self._work()
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
        self._dashboard = self._way_in(
            str(self._process("broker").ready.get("login", ""))
        )
        tls = "native" in str(self._process("broker").ready.get("tls", ""))
        server = f"{SECURE if tls else ''}127.0.0.1:{ports.native}"
        if self._wanted.spark:
            self._store = self._store or str(self._process("store").ready["url"])
            where = place_of(self._store)
            if not self._in_background(self._prepare, f"waiting for the store {where}"):
                return
        self._desk = BrokerDesk(server, self._wanted.login, self._wanted.ca_file)
        make = partial(self._desk.make_topics, spark=self._wanted.spark)
        if not self._in_background(make, "waiting for the broker to make topics"):
            return
        self._ask()
        self._add(
            other_parts(
                *(self._wanted, self._places),
                server=server,
                tweets=f"http://127.0.0.1:{ports.tweets}",
                store=self._store,
            )
        )
        self._figures.begin(self._processes)
        self._look_until(self._all_ready)
        self._rest()

    def _all_ready(self) -> bool:
        return all(one.is_ready or self._rests(one) for one in self._processes)

    def _rests(self, one: Process) -> bool:
        return self._resting and one.part.rests

    def _rest(self) -> None:
        """Until a client asks for the stream, if it is to wait for that."""
        if self._is_awake() or self._stopping:
            return
        port = self._wanted.ports.control
        self._doing = f"resting: twitter at port {port} starts the stream"
        self._look_until(self._is_awake)
        if self._is_awake():
            self._doing = ""
            self._look_until(self._all_ready)

    def _is_awake(self) -> bool:
        return not self._resting

    def _stay(self) -> PipelinePorts:
        """Have the first parts where they are now, however often they are started."""
        ready = {one.part.name: one.ready for one in self._processes}
        ports = ports_of(ready, self._wanted.ports)
        self._wanted = replace(self._wanted, ports=ports)
        self._plan_again()
        return ports

    def _plan_again(self) -> None:
        """Have the first parts as they are wanted now, the next time they start."""
        parts = first_parts(self._wanted, self._places)
        for part in parts:
            self._process(part.name).part = part

    def _in_background(self, work: Callable[[], None], doing: str) -> bool:
        """Do what may take long, and look after the parts meanwhile.

        False if a signal has ended the waiting: ``doing`` is what was waited for then.
        Raises what the work does.
        """
        self._doing = doing
        thread = BackgroundThread(work)
        self._look_until(lambda: thread.is_done)
        if thread.is_done:
            self._doing = ""
            thread.check()
        return not self._stopping

    def _prepare(self) -> None:
        with open_store(self._store) as store:
            kept.prepare(self._places, store, self._wanted.store)

    def _add(self, parts: Sequence[Part]) -> None:
        self._processes += [
            Process(one, self._places, self._clock, inherits=(self._held,))
            for one in parts
        ]

    def _process(self, name: str) -> Process:
        return next(one for one in self._processes if one.part.name == name)

    # The middle

    def _work(self) -> Outcome:
        self._ready_s = self._clock()
        end_s = float("inf") if self._for_s is None else self._ready_s + self._for_s
        self._look_until(lambda: self._clock() >= end_s or self._all_came())
        return self._outcome([], []) if self._stopping else self._worked_off()

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
            first = startable and ready.issuperset(one.part.after)
            if one.state is PartState.WAITING and first and not self._rests(one):
                one.start()
            ran = one.pid is not None
            one.look(startable=startable)
            died = ran and one.state is PartState.PAUSED
            if died and startable and not one.was_ready:
                raise PartFailed(one.part.name, one.exit_code or 0, one.last_line())
        now_s = self._clock()
        if now_s - self._asked_s >= ASK_S:
            self._asked_s = now_s
            self._ask()
            rows = self._figures.rows(self._processes, now_s)
            self._display.show(rows, self._heading(now_s), now_s)
            self._tell(rows, running=True)
        if now_s - self._tidied_s >= TIDY_S:
            self._tidied_s = now_s
            self._tidy()

    def _tell(self, rows: Sequence[StageCounts], *, running: bool) -> None:
        tell(
            *(self._places.view, rows, self._processes),
            running=running,
            resting=self._resting,
            spark=self._wanted.spark,
        )

    def _tidy(self) -> None:
        """What keeps a run of days small."""
        for one in self._processes:
            shorten(self._places.log(one.part.name))
        if self._wanted.spark and self._desk is not None:
            self._desk.look_at(self._sums)

    def _all_came(self) -> bool:
        """Whether the streams have an end, and it has been received."""
        if self._wanted.count is None:
            return False
        ingest = read_json(self._places.status("ingest"))
        if ingest.get("pid") != self._process("ingest").pid:
            return False
        received, over = ingest.get("events"), ingest.get("over")
        most = self._wanted.count * len(STREAMS)
        all_received = isinstance(received, int) and received >= most
        return all_received or over == len(STREAMS)

    def _ask(self) -> None:
        if self._desk is not None:
            self._desk.ask()
            self._figures.counted = self._desk.counted
            self._resting = self._resting and not self._desk.wants_stream()

    def _heading(self, now_s: float) -> str:
        if self._doing:
            what = f"{self._doing}, {now_s - self._began_s:.0f} s"
        elif self._ready_s is None:
            what = f"starting, {now_s - self._began_s:.0f} s"
        elif self._drained_s is not None:
            what = f"working off what is left, {now_s - self._drained_s:.0f} s"
        else:
            limit = "" if self._for_s is None else f" of {self._for_s:.0f} s"
            what = f"{now_s - self._ready_s:.0f} s{limit}"
        link = f"\ndashboard: {self._dashboard}" if self._dashboard else ""
        return f"penstock up, {what}{link}"

    def _way_in(self, login: str) -> str:
        """The link that logs in, or how to get it: a file may be read by others."""
        if self._show_login or not login:
            return login
        command = f"penstock token show --link --data {self._places.broker}"
        return f"{login.partition('#')[0]} ({command}: the way in)"

    # The end

    def _worked_off(self) -> Outcome:
        """Let everything that is under way arrive, and compare the books."""
        self._drained_s = self._clock()
        self._make_no_more()
        quiet = Quiet(self._clock())
        limit_s = self._clock() + MOST_S
        found: list[Comparison] = []

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

    def _make_no_more(self) -> None:
        """Start the source anew, to give what it has sent to readers that lack it."""
        source = self._process("source")
        source.tell_to_end()
        source.wait(GRACE_S)
        self._sent = sent(source.status, self._process("ingest").status)
        self._wanted = replace(self._wanted, last=self._sent)
        self._plan_again()
        source.start()

    def _rows(self) -> list[StageCounts]:
        return self._figures.rows(self._processes, self._clock())

    def _accounts(self) -> list[Comparison]:
        assert self._desk is not None, "parts that need it have run"
        self._ask()
        self._desk.look_at(self._sums)
        statuses = {one.part.name: one.status for one in self._processes}
        stored = self._stored() if self._wanted.spark else None
        return accounts(
            *(statuses, self._figures.counted, self._sums, stored),
            letters=self._desk.letters("ingest sse"),
            sent=self._sent,
        )

    def _stored(self) -> StoredDocuments:
        """What the store has now; what cannot be asked for is counted as -1."""
        try:
            with open_store(self._store, retry_s=COUNT_S) as store:
                now = {name: store.count(name) for name in COLLECTIONS}
                engaged = sum(doc["count"] for _, _, doc in store.read(ENGAGEMENTS))
        except StoreError:
            now, engaged = dict.fromkeys(COLLECTIONS, -1), -1
        return StoredDocuments(kept.before(self._places), now, engaged)

    def _outcome(self, found: list[Comparison], unfinished: list[str]) -> Outcome:
        now_s = self._clock()
        notes = [f"ended while {self._doing}"] if self._doing else []
        if found and self._wanted.spark and not self._sums.is_whole:
            notes.append("statistics are not compared: some went before they were read")
        return Outcome(
            *(self._figures.rows(self._processes, now_s), found, self._times(now_s)),
            unfinished=unfinished,
            over=bool(self._ready_s) and self._all_came(),
            notes=notes,
        )

    def _times(self, now_s: float) -> Times:
        ready_s = now_s if self._ready_s is None else self._ready_s
        drained_s = now_s if self._drained_s is None else self._drained_s
        return Times(
            ready_s - self._began_s, drained_s - ready_s, max(now_s - drained_s, 0.0)
        )

    def _end(self) -> None:
        """End the parts, those first that others do not need."""
        if self._desk is not None:
            self._desk.hang_up()
        self._tell(self._rows(), running=False)
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
