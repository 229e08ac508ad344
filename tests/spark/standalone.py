"""A standalone cluster of Spark on this machine: master and workers are processes.

    with cluster(tmp_path / "cluster") as spark:
        session(spark.address)

Free ports of the loopback, a log of each process in the directory; all of them are
gone when the block ends.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from penstock.spark.sessions import LIGHT, LOOPBACK, environment

# A machine that does much else takes its time; what has ended is not waited for.
START_S = 300.0
TWO = (LOOPBACK, LOOPBACK)
MASTER = "org.apache.spark.deploy.master.Master"
EXECUTOR = "CoarseGrainedExecutorBackend"
WORKER = "org.apache.spark.deploy.worker.Worker"


class NoCluster(Exception):
    """It did not start; the text says why."""


class Cluster:
    """A master and workers of one core; each with a log that says what it does.

    ``hosts``: where the workers are; every address of 127/8 is this machine.
    """

    def __init__(self, directory: Path, stack: ExitStack, hosts: Sequence[str]) -> None:
        self._directory = directory
        self._stack = stack
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._environment = {
            **os.environ,
            **environment("local"),
            "SPARK_DAEMON_JAVA_OPTS": LIGHT,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            "SPARK_WORKER_DIR": str(directory / "work"),
        }
        ports = ("--port", "0", "--webui-port", "0")
        self._start("master", MASTER, *ports, "--host", LOOPBACK)
        self.address = self._said("master", r"Starting Spark master at (spark://\S+)")
        room = ("--cores", "1", "--memory", "768m")
        names = {f"worker-{number}": host for number, host in enumerate(hosts)}
        self.workers = [
            self._start(name, WORKER, *ports, *room, "--host", host, self.address)
            for name, host in names.items()
        ]
        for name in names:
            self._said(name, r"Successfully registered with master (\S+)")

    def log(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text(errors="replace")

    def executors(self) -> list[int]:
        """Processes that the workers have started and that run."""
        return [pid for worker in self.workers for pid in executors_of(worker)]

    def kill(self, number: int) -> None:
        """End a worker and its executors with no warning."""
        worker = self.workers[number]
        for pid in [worker.pid, *executors_of(worker)]:
            os.kill(pid, signal.SIGKILL)
        worker.wait()

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
        self._processes[name] = process
        return process

    def _said(self, name: str, pattern: str) -> str:
        deadline_s = time.monotonic() + START_S
        while (found := re.search(pattern, self.log(name))) is None:
            code = self._processes[name].poll()
            if code is not None or time.monotonic() > deadline_s:
                how = f"within {START_S:g} s" if code is None else f"and ended: {code}"
                last = self.log(name)[-500:]
                raise NoCluster(f"the {name} did not start {how}: {last}")
            time.sleep(0.05)
        return found[1]


@contextmanager
def started(directory: Path, hosts: Sequence[str]) -> Iterator[Cluster]:
    """Raises NoCluster."""
    directory.mkdir()
    with ExitStack() as stack:
        yield Cluster(directory, stack, hosts)


@contextmanager
def cluster(directory: Path, hosts: Sequence[str] = TWO) -> Iterator[Cluster]:
    """The same for tests: one that does not start is a component that is missing."""
    with ExitStack() as stack:
        try:
            one = stack.enter_context(started(directory, hosts))
        except NoCluster as error:
            pytest.skip(f"component: a Spark cluster ({error})")
        yield one


def executors_of(worker: subprocess.Popen[bytes]) -> list[int]:
    children = [pid for pid, parent in processes() if parent == worker.pid]
    return [pid for pid in children if EXECUTOR in command_of(pid)]


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
