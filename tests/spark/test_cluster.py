"""Source and sink on a cluster: master and workers are processes, one executor dies."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from penstock.client import Client, connect
from penstock.errors import ServerRefused
from penstock.spark.sessions import LOOPBACK, environment
from tests.serving import serving

pytestmark = [pytest.mark.spark, pytest.mark.slow]

JOB = Path(__file__).with_name("cluster_job.py")
EVENTS = 20_000
START_S = 60.0
WORK_S = 180.0
MASTER = "org.apache.spark.deploy.master.Master"
EXECUTOR = "CoarseGrainedExecutorBackend"
WORKER = "org.apache.spark.deploy.worker.Worker"


class Cluster:
    """A master and two workers; each with a log that says what it does."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self._directory = directory
        self._stack = stack
        self._environment = {
            **os.environ,
            **environment("local"),
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            "SPARK_WORKER_DIR": str(directory / "work"),
        }
        ports = ("--host", LOOPBACK, "--port", "0", "--webui-port", "0")
        self._start("master", MASTER, *ports)
        self.address = self._said("master", r"Starting Spark master at (spark://\S+)")
        room = ("--cores", "1", "--memory", "768m")
        self.workers = [
            self._start(name, WORKER, *ports, *room, self.address)
            for name in ("worker-0", "worker-1")
        ]
        for name in ("worker-0", "worker-1"):
            self._said(name, r"Successfully registered with master (\S+)")

    def log(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text(errors="replace")

    def executors(self) -> list[int]:
        """Processes that the workers have started and that run."""
        workers = {worker.pid for worker in self.workers}
        children = [pid for pid, parent in processes() if parent in workers]
        return [pid for pid in children if EXECUTOR in command_of(pid)]

    def launched(self) -> int:
        return self.log("master").count("Launching executor ")

    def _start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        home = Path(self._environment.get("SPARK_HOME", ""))
        with (self._directory / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [home / "bin" / "spark-class", *command],
                env=self._environment,
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._stack.callback(process.wait)
        self._stack.callback(process.terminate)
        return process

    def _said(self, name: str, pattern: str) -> str:
        deadline_s = time.monotonic() + START_S
        while (found := re.search(pattern, self.log(name))) is None:
            if time.monotonic() > deadline_s:
                last = self.log(name)[-500:]
                reason = f"the {name} did not start within {START_S:g} s: {last}"
                pytest.skip(f"component: a Spark cluster ({reason})")
            time.sleep(0.05)
        return found[1]


@contextmanager
def cluster(directory: Path) -> Iterator[Cluster]:
    directory.mkdir()
    with ExitStack() as stack:
        yield Cluster(directory, stack)


def test_an_executor_that_dies_loses_nothing_and_repeats_nothing(
    tmp_path: Path,
) -> None:
    numbers = [str(number) for number in range(EVENTS)]
    with (
        serving(tmp_path) as broker,
        cluster(tmp_path / "cluster") as spark,
        connect(broker.data) as client,
    ):
        client.publish("in", [number.encode() for number in numbers], ids=numbers)
        servers = f"{LOOPBACK}:{broker.ports['native']}"
        checkpoint = str(tmp_path / "checkpoint")
        with job(tmp_path, spark.address, servers, checkpoint) as running:
            wait_for(lambda: written(client) > 0 or running.poll() is not None)
            assert running.poll() is None, (tmp_path / "job.log").read_text()
            before = written(client)
            victim, *others = spark.executors()
            os.kill(victim, signal.SIGKILL)
            code = running.wait(WORK_S)

        assert code == 0, (tmp_path / "job.log").read_text()[-5000:]
        assert 0 < before < EVENTS
        assert others, "both workers had an executor"
        assert spark.launched() >= 3, spark.log("master")
        assert ids(client, "out") == Counter(numbers)


@contextmanager
def job(directory: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with (directory / "job.log").open("wb") as log:
        running = subprocess.Popen(
            [sys.executable, str(JOB), *arguments], stdout=log, stderr=log
        )
    try:
        yield running
    finally:
        running.terminate()
        running.wait()


def written(client: Client) -> int:
    try:
        return client.fetch("out", 0, 1).end_offset
    except ServerRefused:
        return 0  # there is no such topic yet


def ids(client: Client, topic: str) -> Counter[str]:
    parts = client.fetch_all(topic, 0, 1 << 40)
    return Counter(
        id_ for part in parts for batch in part.batches for id_ in batch.ids()
    )


def processes() -> Iterator[tuple[int, int]]:
    """All processes with their parents."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            behind_name = path.read_text(errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just gone
        yield int(path.parent.name), int(behind_name[1])


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_for(ready: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WORK_S
    while not ready():
        assert time.monotonic() < deadline_s, "it never happened"
        time.sleep(0.05)
