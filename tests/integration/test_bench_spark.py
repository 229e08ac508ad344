"""What the benchmark of Spark says of its samples; that it runs is in tests/spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="component: pyspark (not installed)")

from bench.rounds import Sample
from bench.spark import latency, page, rows, stream, topics
from bench.spark.__main__ import PAGE, WORKLOADS


def test_payloads_are_json_of_one_size_and_differ() -> None:
    found = [topics.payload(number) for number in (0, 1, 9_999, 123_456_789)]

    assert {len(payload) for payload in found} == {topics.PAYLOAD_BYTES}
    assert len(set(found)) == len(found)
    names = [field.split()[0] for field in topics.FIELDS.split(", ")]
    assert all(list(json.loads(payload)) == names for payload in found)


def test_a_ratio_is_held_against_what_was_promised() -> None:
    sample = Sample(events=2_000_000, bytes=0, seconds=1.0, cpu_s=3.0)
    row = rows.plain("table", "value alone", "Penstock", sample)

    less, more = (rows.compared(row, part, "Parquet", 0.75) for part in (0.7, 0.8))
    beaten = rows.beaten(row, 4.9, 5.0)

    assert (row.rate, row.cpu_s_per_million) == ("2.00 M rows/s", 1.5)
    assert (less.ratio, less.target, less.met) == (
        "70% of Parquet",
        "at least 75%",
        False,
    )
    assert more.met is True
    assert (beaten.ratio, beaten.met) == ("Penstock 4.9x of it", False)


def test_latency_is_the_median_of_rounds_beside_the_floor() -> None:
    table = latency.rows_of(
        {
            latency.FLOOR: [(100, 200), (900, 900), (100, 200)],
            latency.OURS: [(120, 300), (120, 300), (1, 1)],
        }
    )

    assert [row.rate for row in table] == [
        "p50 100 ms, p95 200 ms",
        "p50 120 ms, p95 300 ms",
    ]
    assert table[1].ratio == "p50 1.20x, p95 1.50x of the floor"
    assert [row.met for row in table] == [None, False]


def test_percentiles_are_values_that_came_up() -> None:
    values = [float(number) for number in range(100, 0, -1)]

    assert rows.percentile(values, 0.5) == 51
    assert rows.percentile(values, 0.95) == 96
    assert rows.percentile([7.0], 0.95) == 7


def test_what_waits_in_between_is_lag() -> None:
    assert stream.Look(at_s=0.0, published=10, stored=4).lag == 6


def test_a_burst_that_leaves_a_lag_misses_what_was_promised() -> None:
    caught_up = stream.Burst(published_s=2.0, caught_up_s=5.0)
    stuck = stream.Burst(published_s=2.0, caught_up_s=180.0, lag=1000)

    good = stream.burst_row([caught_up, caught_up], 1_000_000)
    bad = stream.burst_row([caught_up, stuck], 1_000_000)

    assert (good.rate, good.met) == ("lag 0 after 5.0 s, 200000 events/s", True)
    assert bad.rate.startswith("lag 1000 after") and bad.met is False


def test_the_page_has_one_place_for_the_table() -> None:
    text = PAGE.read_text()

    assert text.count(page.BEGIN) == text.count(page.END) == 1
    assert sorted(WORKLOADS) == ["batch", "json", "latency", "network", "stream"]


def test_a_page_without_the_marks_gets_a_section(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Title\n")

    page.write(path, {"CPU": "one"}, [], ["a note"])
    page.write(path, {"CPU": "two"}, [], [])

    text = path.read_text()
    assert text.startswith("# Title\n\n## Topics in Spark")
    assert text.count(page.BEGIN) == text.count(page.END) == 1
    assert "| CPU | two |" in text and "a note" not in text
