"""The jobs on a standalone cluster: one executor, then two, of one core each.

Driver, master, workers, broker and store are processes of this machine and share its
cores: what two executors bring is bounded by the cores that the others leave. So the
table says what was busy meanwhile.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.peers import penstock_server
from bench.peers.processes import TICKS_PER_S, Server
from bench.pipeline.jobs import fill
from bench.pipeline.line import tree_cpu_s
from bench.pipeline.scene import Scene
from bench.rounds import Row, Sample
from penstock.spark.sessions import LOOPBACK
from penstock.store.own import OwnPostgres
from penstock.store.store import VARIABLE
from tests.spark.standalone import Cluster, started

BENCHMARK = "the jobs from a topic, on a standalone cluster"
EXECUTORS = {"one executor": 1, "two executors": 2}
# Enough for both times at 6 600 tweets/s; who is quicker than that gets less of each.
TWEETS, QUICK_TWEETS = 1_200_000, 60_000
# For Java and for Python's workers, to get warm; then it is looked at.
WARM_S, QUICK_WARM_S = 120.0, 10.0
WINDOW_S, QUICK_WINDOW_S = 60.0, 15.0
OTHERS = "others"
# Who has so much of his cores is what limits the rest.
BUSY = 0.85
POLL_S = 0.1
PATIENCE_S = 600.0


def run(scene: Scene) -> dict[str, Sample]:
    """A sample each; its facts are the cores that were busy, by who had them."""
    tweets = QUICK_TWEETS if scene.settings.quick else TWEETS
    broker = penstock_server.start(scene.fresh("broker"), "sync")
    try:
        fill(f"127.0.0.1:{broker.place.ports['native']}", tweets)
        hosts = [LOOPBACK] * max(EXECUTORS.values())
        with started(scene.fresh("cluster") / "spark", hosts) as spark:
            return {
                name: _measured(scene, spark, broker, count, tweets)
                for name, count in EXECUTORS.items()
            }
    finally:
        broker.stop()


def rows(samples: Mapping[str, Sample]) -> list[Row]:
    """The first is what the others are held against."""
    return [_row(name, one, samples) for name, one in samples.items()]


def _row(name: str, sample: Sample, samples: Mapping[str, Sample]) -> Row:
    first = next(iter(samples))
    times = sample.events_per_s / samples[first].events_per_s
    held = "" if name == first else f"{times:.2f}x of {first}; "
    return Row(
        benchmark=BENCHMARK,
        case="",
        contender=name,
        rate=f"{sample.events_per_s:.0f} tweets/s",
        cpu_s_per_million=sample.cpu_s_per_million,
        ratio=held + limit(sample.facts, EXECUTORS[name], os.cpu_count() or 1),
    )


def limit(busy: Mapping[str, float], executors: int, cores: int) -> str:
    """Who had how many cores, and what therefore was the limit."""
    shares = ", ".join(f"{who} {had:.2f}" for who, had in busy.items())
    if sum(busy.values()) >= BUSY * cores:
        what = f"all {cores} cores of the machine"
    elif busy["executors"] >= BUSY * executors:
        what = "the executors"
    else:
        what = "none of them: it is waiting for one another"
    return f"limited by {what} (cores: {shares})"


@dataclass(frozen=True, kw_only=True)
class Look:
    at_s: float
    events: int
    cpu_s: dict[str, float]
    machine_s: float


def _measured(
    scene: Scene, spark: Cluster, broker: Server, executors: int, tweets: int
) -> Sample:
    """From when it is warm, for a while, or until all tweets are done."""
    quick = scene.settings.quick
    warm_s = QUICK_WARM_S if quick else WARM_S
    window_s = scene.seconds or (QUICK_WINDOW_S if quick else WINDOW_S)
    folder = scene.fresh(f"executors-{executors}")
    with (
        OwnPostgres(scene.fresh("store")) as store,
        _driver(folder, spark.address, broker, store.url, executors) as driver,
    ):
        assert store.pid is not None, "it has just started"
        pids = {
            "executors": [one.pid for one in spark.workers],
            "driver": [driver.pid],
            "store": [store.pid],
            "broker": broker.place.pids,
        }
        watch = Watch(folder, driver, pids)
        watch.until(1, 0.0)
        begin = watch.until(tweets // 2, warm_s)
        end = watch.until(tweets, window_s)
    return _sample(begin, end)


def _sample(begin: Look, end: Look) -> Sample:
    seconds = end.at_s - begin.at_s
    used_s = {who: end.cpu_s[who] - begin.cpu_s[who] for who in begin.cpu_s}
    # What is not of this run: others on the machine, and the looks themselves.
    rest_s = max(end.machine_s - begin.machine_s - sum(used_s.values()), 0.0)
    return Sample(
        events=end.events - begin.events,
        bytes=0,
        seconds=seconds,
        cpu_s=used_s["executors"] + used_s["driver"],
        facts={who: used / seconds for who, used in {**used_s, OTHERS: rest_s}.items()},
    )


def machine_cpu_s() -> float:
    """What all processes of the machine have used."""
    user, nice, system, _, _, interrupts, soft = map(
        int, Path("/proc/stat").read_text().split()[1:8]
    )
    return (user + nice + system + interrupts + soft) / TICKS_PER_S


@contextmanager
def _driver(
    folder: Path, master: str, broker: Server, store: str, executors: int
) -> Iterator[subprocess.Popen[bytes]]:
    server = f"127.0.0.1:{broker.place.ports['native']}"
    command = [penstock_server.program(), "pipeline", "run", "--master", master]
    command += ["--server", server, "--checkpoint", folder / "checkpoint"]
    command += ["--status-file", folder / "status.json"]
    command += ["--conf", f"spark.cores.max={executors}"]
    command += ["--conf", "spark.executor.memory=512m"]
    with (folder / "driver.out").open("wb") as out:
        driver = subprocess.Popen(
            list(map(str, command)),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, VARIABLE: store, "SPARK_LOCAL_DIRS": str(folder)},
        )
    try:
        yield driver
    finally:
        driver.terminate()
        driver.wait()


@dataclass(frozen=True)
class Watch:
    folder: Path
    driver: subprocess.Popen[bytes]
    pids: Mapping[str, list[int]]

    def until(self, events: int, seconds: float) -> Look:
        """A look, once so many events are done, or a batch ends behind that time."""
        due_s = time.monotonic() + seconds
        was: int | None = None
        while (done := self._events()) < events and was in (None, done):
            now_s = time.monotonic()
            was = done if now_s >= due_s else None
            self._check(late=now_s >= due_s + PATIENCE_S)
            time.sleep(POLL_S)
        cpu_s = {who: sum(map(tree_cpu_s, some)) for who, some in self.pids.items()}
        return Look(
            at_s=time.monotonic(), events=done, cpu_s=cpu_s, machine_s=machine_cpu_s()
        )

    def _check(self, *, late: bool) -> None:
        if self.driver.poll() is not None:
            said = (self.folder / "driver.out").read_text()[-500:]
            raise RuntimeError(f"the driver has ended: {said}")
        if late:
            raise RuntimeError(f"no batch in {PATIENCE_S:.0f} s")

    def _events(self) -> int:
        try:
            told = json.loads((self.folder / "status.json").read_bytes())
        except FileNotFoundError:
            return 0
        return int(told["events"])
