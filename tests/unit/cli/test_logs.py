from __future__ import annotations

import json

import pytest

from penstock.desk import logs as desk_logs
from tests.unit.cli.desk_run import DeskRun


@pytest.fixture
def two(run: DeskRun) -> DeskRun:
    """``a`` has settled nothing, ``b`` everything."""
    run.client.publish(
        "t", [b'{"x": 1.10}', b"text"], priorities=[0, 9], ids=["i0", "i1"]
    )
    run.client.subscribe("t", "a", start="earliest").close()
    run.client.subscribe("t", "b").close()
    return run


def test_the_json_is_the_view_of_the_line_protocol(two: DeskRun) -> None:
    (line,) = two.lines("logs", "t", "--json")

    found = json.loads(line)
    assert list(found) == ["a", "b"]
    first, second = found["a"]
    assert list(first) == ["timestamp", "priority", "msg", "id"]
    assert (first["priority"], first["msg"], first["id"]) == (9, "text", "i1")
    assert (second["msg"], found["b"]) == ({"x": 1.1}, [])
    assert '"msg":{"x": 1.10}' in line


def test_the_table_shows_the_highest_priority_first(two: DeskRun) -> None:
    lines = two.lines("logs", "t")

    assert lines[0] == "a: 2 unsettled events"
    assert [line.split()[:2] for line in lines[2:4]] == [["9", "i1"], ["0", "i0"]]
    assert lines[4] == "b: 0 unsettled events"


def test_what_is_left_out_is_noted(two: DeskRun) -> None:
    result = two("logs", "t", "--limit", "1", "--json")

    assert len(json.loads(result.stdout)["a"]) == 1
    assert result.stderr == "note: a: 1 of 2 are shown\n"


def test_subscribers_of_several_pages_are_one_answer(
    two: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_logs, "MAX_BYTES", 10)

    found = json.loads(two.lines("logs", "t", "--json")[0])

    assert list(found) == ["a", "b"]


def test_nobody_is_said(run: DeskRun) -> None:
    run.client.publish("t", b"0")

    assert run.lines("logs", "t") == ["t has no subscribers"]
    assert run.lines("logs", "t", "--json") == ["{}"]
    assert run.refused("logs", "none") == "error: topic none does not exist\n"
