"""A driver that is killed with SIGKILL, and started again from its checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from penstock.client import Client, connect
from penstock.errors import ServerRefused
from tests.serving import Serving, serving
from tests.spark.driver_job import BATCH

pytestmark = [pytest.mark.spark, pytest.mark.deep]

JOB = Path(__file__).with_name("driver_job.py")
WAIT_S = 180.0


def test_a_driver_killed_inside_a_commit_stores_every_event_once(
    tmp_path: Path,
) -> None:
    """When all is staged, and when all is stored and Spark does not know it."""
    commits = tmp_path / "checkpoint" / "commits"
    with serving(tmp_path) as broker, connect(broker.data) as client:
        numbers = filled(client, 5 * BATCH)

        killed_in_commit(tmp_path, broker, "before", epoch=1)
        assert ids(client) == Counter(numbers[:BATCH])

        killed_in_commit(tmp_path, broker, "after", epoch=2)
        assert ids(client) == Counter(numbers[: 3 * BATCH])
        assert not (commits / "2").exists()

        finished(tmp_path, broker)
        assert ids(client) == Counter(numbers)
        assert (commits / "2").exists()


@pytest.mark.slow
def test_a_driver_killed_at_any_time_stores_every_event_once(tmp_path: Path) -> None:
    with serving(tmp_path) as broker, connect(broker.data) as client:
        numbers = filled(client, 30 * BATCH)

        for least in (1, 10 * BATCH):
            with job(tmp_path, broker) as driver:
                wait_for(partial(has, client, least), driver)
                kill(driver)
        assert written(client) < len(numbers)

        finished(tmp_path, broker)
        assert ids(client) == Counter(numbers)


def filled(client: Client, count: int) -> list[str]:
    """The ids of the events that there are to copy."""
    numbers = [str(number) for number in range(count)]
    client.publish("in", [number.encode() for number in numbers], ids=numbers)
    return numbers


def finished(directory: Path, broker: Serving) -> None:
    with job(directory, broker) as driver:
        code = driver.wait(WAIT_S)
    assert code == 0, log(directory)


def killed_in_commit(
    directory: Path, broker: Serving, when: str, *, epoch: int
) -> None:
    marker = directory / f"marker-{epoch}"
    with job(directory, broker, marker, when, str(epoch)) as driver:
        wait_for(marker.exists, driver)
        kill(driver)


@contextmanager
def job(
    directory: Path, broker: Serving, marker: Path | None = None, *fault: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A driver with its Java, in a group of processes of their own."""
    servers = f"127.0.0.1:{broker.ports['native']}"
    arguments = [servers, str(directory / "checkpoint"), str(marker), *fault]
    with (directory / "job.log").open("ab") as output:
        driver = subprocess.Popen(
            [sys.executable, str(JOB), *arguments],
            stdout=output,
            stderr=output,
            cwd=directory,
            start_new_session=True,
        )
    try:
        yield driver
    finally:
        if driver.poll() is None:
            kill(driver)


def kill(driver: subprocess.Popen[bytes]) -> None:
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def log(directory: Path) -> str:
    return (directory / "job.log").read_text(errors="replace")[-5000:]


def written(client: Client) -> int:
    try:
        return client.fetch("out", 0, 1).end_offset
    except ServerRefused:
        return 0  # there is no such topic yet


def has(client: Client, least: int) -> bool:
    return written(client) >= least


def ids(client: Client) -> Counter[str]:
    parts = client.fetch_all("out", 0, 1 << 40)
    return Counter(
        id_ for part in parts for batch in part.batches for id_ in batch.ids()
    )


def wait_for(ready: Callable[[], bool], driver: subprocess.Popen[bytes]) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not ready():
        assert driver.poll() is None, "it ended by itself"
        assert time.monotonic() < deadline_s, "it never happened"
        time.sleep(0.02)
