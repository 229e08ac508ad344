"""Source and sink on a cluster: master and workers are processes, one executor dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.client import Client, connect
from penstock.errors import ServerRefused
from penstock.spark.sessions import LOOPBACK
from tests.serving import serving
from tests.spark.standalone import cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.deep]

JOB = Path(__file__).with_name("cluster_job.py")
EVENTS = 20_000
WORK_S = 180.0


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


def wait_for(ready: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + WORK_S
    while not ready():
        assert time.monotonic() < deadline_s, "it never happened"
        time.sleep(0.05)
