"""All parts of ``penstock up``, as the processes that it starts, with a source to hold.

The parts are those of ``penstock up`` itself, and the ingest is the last to start, as
there: nothing waits for Spark before it is there. The source sends
as fast as it is read, and is held (SIGSTOP) while too much is under way, or it sends at
a steady rate.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.peers.processes import TICKS_PER_S, descendants
from bench.pipeline.looks import Look
from bench.pipeline.store import Server
from penstock.client import Client, connect
from penstock.store.store import open_store
from penstock.supervisor import topics
from penstock.supervisor.figures import Counted, counted, processed
from penstock.supervisor.part import Part, Places
from penstock.supervisor.plan import (
    COLLECTIONS,
    FIREHOSE,
    PipelinePorts,
    PipelineRequest,
    first_parts,
    other_parts,
    subscriber,
)
from penstock.supervisor.process import Process

SEED = 1
# No end of tweets: as many as are read.
UNBOUNDED = 0.0
TWEETS = "tweets"
READY_S = 240.0
STOP_S = 40.0
# A part that has ended is started again, as by ``penstock up``, but not for ever.
TRIES = 3
LOOK_S = 0.25
STAGES = ("source", "ingest", "broker", "spark", "store", "cdc", "subscribers")
PORTS = PipelinePorts(line=0, native=0, control=0, http=0, tweets=0, store=0)


class Broken(Exception):
    """A part did not start, or has ended; the text says which, and its last words."""


class Line:
    """Use it from one thread; ``started`` makes one."""

    def __init__(self, folder: Path, store: Server | None) -> None:
        self._places = Places(folder)
        self._store = store
        url = None if store is None else store.url
        self._wanted = PipelineRequest(
            rate=UNBOUNDED, seed=SEED, ports=PORTS, store=url
        )
        self._processes: dict[str, Process] = {}
        self._client: Client | None = None

    def start(self) -> None:
        """Until every part is ready. Raises Broken."""
        self._places.make()
        for part in first_parts(self._wanted, self._places):
            self._start(part)
        self._wait()
        ports: Any = self._processes["broker"].ready["ports"]
        server = f"127.0.0.1:{ports['native']}"
        store = self._wanted.store or str(self._processes["store"].ready["url"])
        self._client = connect(server, name="bench")
        topics.make(self._client, topics.wanted(spark=True))
        with open_store(store) as kept:
            kept.prepare(COLLECTIONS)
        url = str(self._processes["source"].ready["url"]).rstrip("/")
        others = other_parts(
            self._wanted, self._places, server=server, tweets=url, store=store
        )
        # What is written before the capture of changes is ready would not be seen.
        for name in ("cdc", "spark", "subscriber", "ingest"):
            for part in others:
                if part.name.startswith(name):
                    self._start(part)
            self._wait()

    def pace(self, rate: float) -> None:
        """Have the source send so many tweets a second, steadily, from now on."""
        self.let_go()
        port = str(self._processes["source"].ready["url"]).rpartition(":")[2]
        self._stop("source")
        wanted = dataclasses.replace(
            self._wanted,
            rate=rate / 2,  # of each of its two streams
            ports=dataclasses.replace(PORTS, tweets=int(port.strip("/"))),
        )
        parts = {one.name: one for one in first_parts(wanted, self._places)}
        source = parts["source"]
        self._start(dataclasses.replace(source, command=(*source.command, "--steady")))
        self._wait()

    def hold(self) -> None:
        """Stop the source where it is."""
        self._signal(signal.SIGSTOP)

    def let_go(self) -> None:
        """Let the source go on."""
        self._signal(signal.SIGCONT)

    def look(self) -> Look:
        """How far everybody is. Raises Broken."""
        self._check()
        now = counted(self.client)
        cdc, spark = (self._processes[one].status for one in ("cdc", "spark"))
        return Look(
            at_s=time.monotonic(),
            firehose=now.topics.get(FIREHOSE, 0),
            processed=processed(now)[0] or 0,
            captured=sum(now.topics.get(name, 0) for name in COLLECTIONS),
            uncaptured_bytes=_whole(cdc.get("lag")),
            unread=sum(_place(now, name)[1] for name in COLLECTIONS),
            acknowledged=_place(now, TWEETS)[0],
            batch=(_whole(spark.get("batches")), _whole(spark.get("batch_ms"))),
            restarts=sum(one.restarts for one in self._processes.values()),
            cpu_s={stage: self._cpu_s(stage) for stage in STAGES},
        )

    @property
    def client(self) -> Client:
        assert self._client is not None, "it was started"
        return self._client

    def stop(self) -> None:
        """End every process, those first that others do not need."""
        self.let_go()
        if self._client is not None:
            with suppress(Exception):
                self._client.close()
        names = list(self._processes)
        for name in [*(n for n in names if n not in KEPT), *KEPT]:
            self._stop(name)

    def _signal(self, number: signal.Signals) -> None:
        source = self._processes.get("source")
        if source is not None and source.pid is not None:
            os.kill(source.pid, number)

    def _cpu_s(self, stage: str) -> float:
        # Subscribers are several parts of one stage.
        one = "subscriber " if stage == "subscribers" else stage
        pids = [
            process.pid
            for name, process in self._processes.items()
            if name.startswith(one) and process.pid is not None
        ]
        if stage == "store" and self._store is not None:
            pids = [self._store.pid]
        return sum(tree_cpu_s(pid) for pid in pids)

    def _start(self, part: Part) -> None:
        self._processes[part.name] = Process(part, self._places)
        self._processes[part.name].start()

    def _stop(self, name: str) -> None:
        process = self._processes.get(name)
        if process is not None:
            process.tell_to_end()
            process.wait(STOP_S)

    def _wait(self) -> None:
        limit_s = time.monotonic() + READY_S
        while not all(one.is_ready for one in self._processes.values()):
            self._check()
            if time.monotonic() >= limit_s:
                late = [n for n, one in self._processes.items() if not one.is_ready]
                raise Broken(f"not ready in {READY_S:.0f} s: {', '.join(late)}")
            time.sleep(0.05)

    def _check(self) -> None:
        for name, process in self._processes.items():
            process.look()  # starts it again, if it has ended
            if process.restarts >= TRIES or (
                process.pid is None and not process.was_ready
            ):
                words = self._last_words(name)
                raise Broken(f"{name} ended with {process.exit_code}: {words}")

    def _last_words(self, name: str) -> str:
        text = self._places.log(name).read_text(errors="replace")
        return " / ".join(text.strip().splitlines()[-3:]) or "it said nothing"


KEPT = ("broker", "store")


@contextmanager
def started(folder: Path, store: Server | None = None) -> Iterator[Line]:
    """``store``: in place of the PostgreSQL that comes along."""
    line = Line(folder, store)
    try:
        line.start()
        yield line
    finally:
        line.stop()


def watch(
    line: Line,
    done: Callable[[list[Look]], bool],
    hold: Callable[[Look], bool] | None = None,
) -> list[Look]:
    """Looks until they are enough; the source is held whenever ``hold`` says so."""
    looks = [line.look()]
    while not done(looks):
        if hold is not None:
            (line.hold if hold(looks[-1]) else line.let_go)()
        time.sleep(LOOK_S)
        looks.append(line.look())
    return looks


def tree_cpu_s(pid: int) -> float:
    """User and system time of a process, of what it started, and of what has ended.

    What has ended is in the books of its parent: workers come and go, and so do
    PostgreSQL's processes.
    """
    ticks = 0
    for one in [pid, *descendants(pid)]:
        try:
            stat = Path(f"/proc/{one}/stat").read_bytes()
        except OSError:
            continue
        ticks += sum(map(int, stat.rpartition(b") ")[2].split(b" ")[11:15]))
    return ticks / TICKS_PER_S


def _place(now: Counted, topic: str) -> tuple[int, int]:
    """Where its subscriber is, and how much it has left."""
    return now.places.get((subscriber(topic), topic), (0, 0))


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
