"""A task that Spark runs twice at the same time, on two workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.spark.sessions import LOOPBACK
from tests.serving import serving
from tests.spark.pipeline_scene import check, generated, publish, written_again
from tests.spark.speculation_job import ROOT
from tests.spark.sqlite_store import SlowStore
from tests.spark.standalone import cluster

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.deep]

# Spark runs the second one on another host.
HOSTS = (LOOPBACK, "127.0.0.2")
WAIT_S = 360


def test_two_tries_of_a_task_that_both_write_have_written_nothing_twice(
    tmp_path: Path,
) -> None:
    payloads = generated(8, 150)
    store = SlowStore(str(tmp_path / "store.db"))
    with serving(tmp_path) as broker, cluster(tmp_path / "cluster", HOSTS) as spark:
        publish(broker, payloads)
        server = f"{LOOPBACK}:{broker.ports['native']}"
        command = [sys.executable, "-m", "tests.spark.speculation_job"]
        done = subprocess.run(
            [*command, spark.address, server, str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            timeout=WAIT_S,
        )

        assert done.returncode == 0, done.stderr.decode()[-5000:]
        assert store.tries() == [0, 1]
        check(broker, store, payloads)
    assert written_again(store, payloads) == {}
