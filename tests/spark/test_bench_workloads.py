"""Every workload of the benchmark runs in a session, for a moment."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.rounds import Settings
from bench.spark import latency, stream
from bench.spark.__main__ import WORKLOADS
from bench.spark.scene import Scene, register

pytestmark = [pytest.mark.spark, pytest.mark.deep]

ROWS = {"batch": 10, "network": 9, "json": 3, "stream": 3, "latency": 3}


@pytest.fixture(scope="module")
def scene(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    settings = Settings(directory=tmp_path_factory.mktemp("bench"), quick=True)
    register(spark)
    return Scene(settings, spark, events=2000, rounds=1, warm_up=False)


@pytest.mark.parametrize("kind", WORKLOADS)
def test_workload_runs(
    scene: Scene, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "OFFERED", 2000)
    monkeypatch.setattr(stream, "BURST", 20_000)
    monkeypatch.setattr(stream, "LEAST_S", 1)
    monkeypatch.setattr(latency, "SECONDS", 1)
    monkeypatch.setattr(latency, "LEAST_S", 1.0)
    monkeypatch.setattr(latency, "WARM_UP_S", 0.1)

    table = WORKLOADS[kind](scene)

    assert len(table) == ROWS[kind]
    assert all(row.rate for row in table)


def test_files_of_a_run_stay_in_its_directory(scene: Scene) -> None:
    made = {path.name for path in scene.directory.iterdir()}

    assert Path(scene.data).parent.name in made
