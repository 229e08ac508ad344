"""The comparison with peers runs, for a moment, with every peer that is installed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.peers import mqtt, programs, quiet, summary
from bench.peers.__main__ import Run, measure
from bench.peers.field import CONTENDERS, SYNC, Workload
from bench.peers.harness import Bench
from bench.peers.install import missing_peers
from bench.rounds import Settings

pytestmark = [pytest.mark.slow, pytest.mark.deep]

SIZES = {"100 B": 100}


def workload(
    kind: str,
    in_flight: int,
    topics: int = 1,
    subscribers: int = 0,
    *,
    acknowledged: bool = True,
) -> Workload:
    return Workload(
        group=kind,
        kind=kind,
        in_flight=in_flight,
        sizes=SIZES,
        topics=topics,
        subscribers=subscribers,
        acknowledged=acknowledged,
    )


WORKLOADS = [
    workload("publish", 100, 3),
    workload("latency", 1),
    workload("consume", 100),
    workload("each", 100, 3, subscribers=3),
    workload("fan-out", 10, subscribers=3),
    workload("fan-out", 10, subscribers=3, acknowledged=False),
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


@pytest.mark.parametrize("system", ["NATS", "Redis", "Valkey", "RabbitMQ", "Kafka"])
def test_every_workload_runs_on_the_peer(bench: Bench, system: str) -> None:
    if why := missing_peers().get(system):
        pytest.skip(f"component: {system} ({why})")
    contenders = {
        name: contender
        for name, contender in CONTENDERS.items()
        if contender.system == system
    }

    theirs = [
        one
        for one in WORKLOADS
        if any(not c.kinds or one.kind in c.kinds for c in contenders.values())
    ]

    found = [bench.case(one.kind, one, 100, contenders) for one in theirs]

    assert bench.absent == {} and bench.failed == {}
    assert [set(samples) for samples in found] == [set(contenders)] * len(theirs)
    assert len(theirs) >= 2
    assert all(sample.events > 0 for samples in found for sample in samples.values())


def test_penstock_runs_through_every_gateway_of_the_comparison(bench: Bench) -> None:
    contenders = {
        name: contender
        for name, contender in CONTENDERS.items()
        if contender.system == "Penstock" and contender.variant == "sync"
    }

    found = [
        bench.case(one.kind, one, 100, contenders)
        for one in WORKLOADS
        if one.acknowledged and one.kind not in ("publish", "latency")
    ]

    assert bench.absent == {} and bench.failed == {}
    assert [len(samples) for samples in found] == [3, 1, 2]


def test_penstock_delivers_without_acknowledgements(bench: Bench) -> None:
    samples = bench.case("none", WORKLOADS[-1], 100, {SYNC: CONTENDERS[SYNC]})

    assert bench.absent == {} and bench.failed == {}
    assert samples[SYNC].events > 0


def test_the_loader_alone_is_measured(bench: Bench) -> None:
    contenders = {n: c for n, c in CONTENDERS.items() if c.system == "sink"}

    found = bench.case("publish", workload("publish", 1000), 100, contenders)

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


@pytest.mark.parametrize("system", ["Penstock", "NATS", "Redis", "Valkey"])
def test_quiet_topics_are_made_kept_and_there_after_a_start(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    if why := missing_peers().get(system):
        pytest.skip(f"component: {system} ({why})")
    monkeypatch.setattr(quiet, "TOPICS", 200)

    rows, notes = measure(Run(bench=bench, peers=[system]), quiet.GROUP)

    assert notes == []
    [row] = rows
    assert row.case == "200 made"
    assert re.search("KiB each, stops in .* s, starts in .* s", row.rate)


def test_a_program_publishes_over_a_url(bench: Bench) -> None:
    bench.settings = Settings(directory=bench.settings.directory, quick=True)

    rows, notes = measure(Run(bench=bench, peers=["Penstock"]), programs.GROUP)

    assert notes == []
    assert [row.contender for row in rows] == ["Penstock, over a URL"]


def test_what_was_measured_answers_questions(bench: Bench) -> None:
    bench.settings = Settings(directory=bench.settings.directory, quick=True)
    run = Run(bench=bench, peers=["Penstock", "Valkey"])
    if why := missing_peers().get("Valkey"):
        pytest.skip(f"component: Valkey ({why})")

    rows, _ = measure(run, "latency")

    assert {row.benchmark for row in rows} == {"one at a time"}
    assert [(line.words, line.peer) for line in summary.lines(run.results)] == [
        ("publish one at a time, 100 B", "Valkey Streams always")
    ]
