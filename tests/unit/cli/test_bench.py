from __future__ import annotations

import json

import pytest

from penstock.cli import bench
from penstock.cli.refusal import Refusal
from tests.unit.cli.desk_run import DeskRun

ROWS = [
    "published, one at a time",
    "published, 100 in a batch",
    "published, 1000 in a batch",
    "published and delivered",
    "delivered, from the backlog",
]


@pytest.mark.parametrize("size", ["0", "1000"])
def test_every_row_is_measured_and_the_topic_goes(run: DeskRun, size: str) -> None:
    (line,) = run.lines("bench", "--for", "20ms", "--size", size, "--json")
    found = json.loads(line)

    assert [row["what"] for row in found] == ROWS
    assert all(row["events"] > 0 for row in found)
    assert all(0 < row["p50_ms"] <= row["p99_ms"] for row in found[:-1])
    assert run.ask("topics")["topics"] == []


def test_a_person_gets_a_table(run: DeskRun) -> None:
    heading, *rows = run.lines("bench", "--for", "10ms", "--durability", "os")

    assert heading.split()[:2] == ["WHAT", "EVENTS/S"]
    assert [row.partition("  ")[0] for row in rows] == ROWS
    assert rows[-1].split()[-3] == "µs" or rows[-1].endswith("-")


def test_the_topic_goes_although_something_fails(
    run: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> int:
        raise Refusal("no more")

    monkeypatch.setattr(bench, "_taken", broken)

    said = run.refused("bench", "--for", "1ms")

    assert said == "error: no more\n"
    assert run.ask("topics")["topics"] == []
