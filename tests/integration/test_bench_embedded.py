"""The comparison of handlers runs, for a moment, with every peer that is installed."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.embedded import page
from bench.embedded.field import (
    ASYNC,
    CELERY,
    COST,
    FASTSTREAM,
    HANDLE,
    LOG,
    PENSTOCK,
    WORKLOADS,
    Contender,
)
from bench.embedded.harness import Bench
from bench.embedded.rows import rows_of
from bench.peers.install import missing_peers
from bench.peers.processes import Missing
from bench.rounds import Sample, Settings

EVENTS = 50


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    settings = Settings(directory=tmp_path, quick=False)
    return Bench(settings=settings, rounds=1, warm_ups=0)


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize("title", WORKLOADS)
def test_penstock_takes_part_in_every_workload(bench: Bench, title: str) -> None:
    contenders = _small(PENSTOCK, WORKLOADS[title].contenders)

    found = bench.case(title, contenders)

    assert bench.absent == {} and bench.failed == {}
    assert list(found) == list(contenders)
    assert all(sample.events == EVENTS for sample in found.values())


@pytest.mark.slow
@pytest.mark.deep
@pytest.mark.parametrize(
    ("system", "kind"),
    [
        (CELERY, "publish"),
        ("NATS", "publish"),
        ("Redis", "publish"),
        (CELERY, "handle"),
        (FASTSTREAM, "handle"),
    ],
)
def test_the_workload_runs_on_the_peer(bench: Bench, system: str, kind: str) -> None:
    [workload] = [one for one in WORKLOADS.values() if one.kind == kind]
    contenders = _small(system, workload.contenders)
    if why := _missing(contenders):
        pytest.skip(f"component: {system} ({why})")

    found = bench.case(kind, contenders)

    assert bench.absent == {} and bench.failed == {}
    assert list(found) == list(contenders)


def test_a_contender_without_its_packages_is_named(bench: Bench) -> None:
    one = dataclasses.replace(HANDLE.contenders[ASYNC], needs=("no_such_package",))

    assert bench.case("handle", {"nobody": one}) == {}
    assert list(bench.absent) == ["nobody"]


def test_a_contender_that_fails_does_not_stop_the_others(bench: Bench) -> None:
    bad = dataclasses.replace(HANDLE.contenders[ASYNC], player="bench.rounds:Nobody")

    assert bench.case("handle", {"bad": bad}) == {}
    assert list(bench.failed) == [("bad", "handle")]


def test_promises_are_held_against_the_best_setting_of_a_peer() -> None:
    rates = {ASYNC: 50_000.0, "Celery solo": 4_000.0, "Celery threads, 4 threads": 10.0}

    ours, best, other = rows_of("handle", HANDLE, _samples(rates))

    assert (best.ratio, best.target) == (
        "Penstock 12.5x of it",
        "Penstock at least 10x",
    )
    assert (ours.met, best.met, other.met) == (None, True, None)


def test_the_cost_of_handling_is_what_goes_beyond_the_log() -> None:
    samples = _samples({LOG: 100.0, ASYNC: 100.0}, {LOG: 2e-6, ASYNC: 18e-6})

    _, ours = rows_of("cost", COST, samples)

    assert ours.ratio == "16.0 µs an event beyond the log"
    assert ours.met is False


def test_a_page_without_the_marks_gets_a_section(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Title\n")
    rows = rows_of("handle", HANDLE, _samples({ASYNC: 5.0}))

    page.write(path, {"CPU": "one"}, rows, ["a note"])
    page.write(path, {"CPU": "two"}, rows, [])

    text = path.read_text()
    assert text.startswith("# Title\n\n## The embedded broker beside Python peers")
    assert text.count(page.BEGIN) == text.count(page.END) == 1
    assert "| CPU | two |" in text and "a note" not in text


def _small(system: str, all_: Mapping[str, Contender]) -> dict[str, Contender]:
    return {
        name: dataclasses.replace(one, events=EVENTS)
        for name, one in all_.items()
        if one.system == system
    }


def _missing(contenders: Mapping[str, Contender]) -> str:
    missing = missing_peers()
    for one in contenders.values():
        try:
            one.check()
        except Missing as error:
            return str(error)
    # Either of the two will do.
    if "Redis" in missing and "Valkey" in missing:
        return missing["Redis"]
    return missing.get("NATS", "")


def _samples(
    rates: Mapping[str, float], cpu_s: Mapping[str, float] | None = None
) -> dict[str, Sample]:
    return {
        name: Sample(
            events=1, bytes=100, seconds=1 / rate, cpu_s=(cpu_s or {}).get(name, 0.0)
        )
        for name, rate in rates.items()
    }
