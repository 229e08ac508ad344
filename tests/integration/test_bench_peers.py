"""The comparison with peers runs, for a moment, with every peer that is installed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.peers import mqtt
from bench.peers.field import CONTENDERS, Workload
from bench.peers.harness import Bench
from bench.peers.install import missing_peers
from bench.rounds import Settings

pytestmark = [pytest.mark.slow, pytest.mark.deep]

SIZES = {"100 B": 100}
WORKLOADS = [
    Workload(kind="publish", in_flight=100, sizes=SIZES, topics=3),
    Workload(kind="consume", in_flight=100, sizes=SIZES),
    Workload(kind="fan-out", in_flight=10, sizes=SIZES, subscribers=3),
]


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(
        settings=Settings(directory=tmp_path, quick=False),
        deadline=time.monotonic() + 300,
        seconds=0.02,
        rounds=1,
        warm_ups=0,
        block_events=1000,
    )
    yield bench
    bench.close()


@pytest.mark.parametrize("system", ["NATS", "Redis", "Valkey", "RabbitMQ"])
def test_every_workload_runs_on_the_peer(bench: Bench, system: str) -> None:
    if why := missing_peers().get(system):
        pytest.skip(f"component: {system} ({why})")
    contenders = {
        name: contender
        for name, contender in CONTENDERS.items()
        if contender.system == system
    }

    found = [
        bench.case(workload.kind, workload, 100, contenders) for workload in WORKLOADS
    ]

    assert bench.absent == {} and bench.failed == {}
    assert [set(samples) for samples in found] == [set(contenders)] * len(WORKLOADS)
    assert all(sample.events > 0 for samples in found for sample in samples.values())


def test_penstock_runs_through_every_gateway_of_the_comparison(bench: Bench) -> None:
    contenders = {
        name: contender
        for name, contender in CONTENDERS.items()
        if contender.system == "Penstock" and contender.variant == "sync"
    }

    found = [
        bench.case(workload.kind, workload, 100, contenders)
        for workload in WORKLOADS
        if workload.kind != "publish"
    ]

    assert bench.absent == {} and bench.failed == {}
    assert [len(samples) for samples in found] == [3, 1]


def test_the_loader_alone_is_measured(bench: Bench) -> None:
    contenders = {n: c for n, c in CONTENDERS.items() if c.system == "sink"}
    workload = Workload(kind="publish", in_flight=1000, sizes=SIZES)

    found = bench.case("publish", workload, 100, contenders)

    assert bench.failed == {}
    assert all(sample.events > 0 for sample in found.values())
    assert set(found) == set(contenders)


@pytest.mark.parametrize("name", sorted(mqtt.CONTENDERS))
def test_every_shape_of_mqtt_cells_runs(bench: Bench, name: str) -> None:
    if why := missing_peers().get(name):
        pytest.skip(f"component: {name} ({why})")
    cells = [
        mqtt.Cell(
            title=shape,
            case="",
            qos=qos,
            size=100,
            publishers=3,
            subscribers=2,
            in_flight=30,
            shape=shape,
        )
        for shape, qos in (("pipelined", 2), ("alone", 1), ("idle", 0))
        if name != mqtt.PYTHON or shape != "idle"
    ]

    found = [mqtt.measure(bench, cell.title, cell, [name]) for cell in cells]

    assert bench.absent == {} and bench.failed == {}
    assert [set(samples) for samples in found] == [{name}] * len(cells)
    assert all(sample.events > 0 for samples in found for sample in samples.values())
