from __future__ import annotations

import os
import platform
import subprocess
import sys
import time

import pytest

from penstock import __version__
from penstock.desk.views.figures import Pipeline, StageRow
from penstock.server import processes
from penstock.server.process_info import NOT_RUNNING
from penstock.server.processes import ProcessWatch, Seen, seen_of, tree_of


def test_this_process_is_the_broker() -> None:
    found = ProcessWatch().look(NOT_RUNNING)

    (broker,) = found.processes
    assert (broker.name, broker.pid, broker.state) == ("broker", os.getpid(), "ready")
    assert broker.memory_bytes is not None
    assert 1 << 20 < broker.memory_bytes < found.machine.memory_bytes
    assert broker.threads is not None
    assert broker.threads >= 1
    assert broker.uptime_s is not None
    assert broker.uptime_s > 0
    assert found.machine.cores == os.cpu_count()
    assert found.versions["penstock"] == __version__
    assert found.versions["python"] == platform.python_version()


@pytest.mark.slow
def test_a_share_is_of_the_time_between_two_looks() -> None:
    watch = ProcessWatch()
    watch.look(NOT_RUNNING)
    began_s, spent_s = time.monotonic(), time.process_time()
    while time.process_time() - spent_s < processes.LEAST_S:
        sum(range(1000))  # busy

    (broker,) = watch.look(NOT_RUNNING).processes
    share = (time.process_time() - spent_s) / (time.monotonic() - began_s)

    # Whatever else runs on this machine.
    assert broker.cpu == pytest.approx(share, rel=0.3)
    assert watch.look(NOT_RUNNING).processes[0].cpu == broker.cpu  # too soon for more


@pytest.mark.slow
def test_parts_of_a_pipeline_are_looked_at_too() -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert other.stdout is not None
    other.stdout.readline()  # it runs
    pipeline = Pipeline(
        running=True,
        stages=[
            StageRow(name="broker", state="ready", pid=os.getpid(), restarts=2),
            StageRow(name="ingest", state="ready", pid=other.pid),
            StageRow(name="spark", state="waiting"),
        ],
        at_ms=0,
    )
    watch = ProcessWatch()
    try:
        broker, ingest, spark = watch.look(pipeline).processes
    finally:
        other.communicate(b"\n")

    assert (broker.pid, broker.restarts) == (os.getpid(), 2)
    assert (ingest.name, ingest.pid, ingest.state) == ("ingest", other.pid, "ready")
    assert ingest.memory_bytes
    assert (spark.pid, spark.cpu, spark.memory_bytes) == (None, None, None)
    gone = watch.look(pipeline).processes[1]
    assert (gone.pid, gone.cpu, gone.memory_bytes) == (other.pid, None, None)


def test_a_name_may_hold_brackets() -> None:
    fields = ["S", *["0"] * 10, "200", "100", *["0"] * 4, "7", "0", "500", "0", "3"]

    seen = Seen(f"12 (a) b) {' '.join(fields)}", 1.0)

    assert seen.cpu_s == 300 / os.sysconf("SC_CLK_TCK")
    assert seen.threads == 7
    assert seen.memory_bytes == 3 * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_a_process_that_is_gone_is_none() -> None:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()

    assert seen_of(done.pid) is None


@pytest.mark.slow
def test_what_a_part_has_started_counts_with_it() -> None:
    script = (
        "import subprocess, sys; sum(range(3_000_000));"
        "child = subprocess.Popen([sys.executable, '-c', 'print(flush=1); input()']);"
        "child.wait()"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as part:
        assert part.stdout is not None
        part.stdout.readline()  # the child is there

        alone, whole = seen_of(part.pid), tree_of(part.pid)

        assert alone is not None
        assert whole is not None
        assert whole.threads == alone.threads + 1
        assert whole.memory_bytes > 1.5 * alone.memory_bytes
        part.communicate(b"\n")
