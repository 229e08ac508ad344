from __future__ import annotations

import json

import pytest

from penstock.client import trails
from tests.unit.cli.desk_run import DeskRun

TRACEBACK = 'Traceback:\n  File "app.py", line 7, in pay'


@pytest.fixture
def failing(run: DeskRun) -> DeskRun:
    """Entries 0 and 1 of ``me``, 2 of ``you``; all events are those of ``t``."""
    run.bury("t", "me", b"0", b"1", kind="KeyError", error="no", traceback=TRACEBACK)
    run.client.subscribe("t", "you").close()
    run.bury("t", "you", b"2")
    return run


def numbers(run: DeskRun, *options: str) -> list[int]:
    lines = run.lines("errors", "list", *options, "--json")
    return [one["number"] for one in json.loads(lines[0])]


def test_without_errors_there_are_none(run: DeskRun) -> None:
    assert run.lines("errors") == ["no errors"]
    assert run.lines("errors", "list") == ["no errors"]
    assert run.lines("errors", "groups") == ["no errors"]
    assert "has no entry 0" in run.refused("errors", "show", "0")


def test_errors_are_a_table_the_newest_first(failing: DeskRun) -> None:
    heading, *rows = failing.lines("errors")

    assert heading.split() == [
        *("NUMBER", "TIME", "SUBSCRIBER", "EVENT", "TRY", "TOOK", "ERROR")
    ]
    assert [row.split()[0] for row in rows] == ["2", "1", "0"]
    assert rows[2].split()[2:] == ["me", "t", "0", "1", "-", "KeyError:", "no"]
    assert rows[0].endswith(" no, thank you")


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--oldest-first"], [0, 1, 2]),
        (["--subscriber", "me"], [1, 0]),
        (["--topic", "u"], []),
        (["--offset", "0"], [0]),
        (["--error", "KeyError"], [1, 0]),
        (["--id", "nobody"], []),
        (["--since", "1h"], [2, 1, 0]),
        (["--until", "1h"], []),
        (["--count", "2"], [2, 1]),
        (["--count", "2", "--oldest-first"], [0, 1]),
    ],
)
def test_the_list_can_be_narrowed(
    failing: DeskRun,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    found: list[int],
) -> None:
    monkeypatch.setattr(trails, "MAX_ROWS", 1)

    assert numbers(failing, *options) == found


def test_an_error_is_shown_with_its_traceback(failing: DeskRun) -> None:
    lines = failing.lines("errors", "show", "1")

    assert "event       offset 1 of t" in lines
    assert "error       KeyError: no" in lines
    assert lines[-2:] == ["  Traceback:", '    File "app.py", line 7, in pay']
    (line,) = failing.lines("errors", "show", "1", "--json")
    assert json.loads(line)["traceback"] == TRACEBACK


def test_errors_are_counted_by_kind(failing: DeskRun) -> None:
    heading, first, second = failing.lines("errors", "groups")
    (line,) = failing.lines("errors", "groups", "--offset", "0", "--json")

    assert heading.split()[:4] == ["COUNT", "SUBSCRIBER", "TOPIC", "ERROR"]
    assert first.split()[:4] == ["2", "me", "t", "KeyError"]
    assert second.split()[:4] == ["1", "you", "t", "Refused"]
    assert [one["count"] for one in json.loads(line)] == [1]
