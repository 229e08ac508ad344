from __future__ import annotations

import json

import pytest

from penstock.client import plan
from tests.unit.cli.desk_run import DeskRun


@pytest.fixture
def two(run: DeskRun) -> DeskRun:
    """``done`` has committed epoch 3, ``new`` has staged something."""
    run.client.stage("done", 3, 0, 0, "t", [b"a", b"b"])
    run.ask("sinks.commit", query="done", epoch=3, parts=[[0, 0]])
    run.client.stage("new", 0, 0, 0, "t", [b"a"])
    return run


def test_queries_are_a_table(two: DeskRun) -> None:
    headings, done, new = (line.split() for line in two.lines("sinks", "list"))

    assert headings == ["QUERY", "EPOCH", "EVENTS", "COMMITTED", "STAGED"]
    assert (done[:3], done[4:]) == (["done", "3", "2"], ["0", "B"])
    assert new[:4] == ["new", "-", "-", "-"]


def test_queries_are_json(two: DeskRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "PAGE_ROWS", 1)

    done, new = json.loads(two.lines("sinks", "list", "--json")[0])

    assert (done["query"], done["epoch"], done["events"]) == ("done", 3, 2)
    assert (new["query"], new["epoch"], new["staged_epochs"]) == ("new", None, 1)


def test_none_are_said(run: DeskRun) -> None:
    assert run.lines("sinks", "list") == ["no sinks"]
