from __future__ import annotations

import json

import pytest

from penstock.client import plan, redrive, trails
from tests.unit.cli.desk_run import DeskRun

TRACEBACK = 'Traceback:\n  File "app.py", line 7, in pay\n    raise \x1b[31m'


@pytest.fixture
def letters(run: DeskRun) -> DeskRun:
    """Letters 0 and 1 of ``me``, 2 of ``you``; all events are those of ``t``."""
    run.bury("t", "me", b"zero", b"one")
    run.client.subscribe("t", "you").close()
    run.bury("t", "you", b"two")
    return run


def numbers(run: DeskRun, *options: str) -> list[int]:
    lines = run.lines("dead-letters", "list", *options, "--json")
    return [one["number"] for one in json.loads(lines[0])]


def test_without_letters_there_are_none(run: DeskRun) -> None:
    assert run.lines("dead-letters") == ["no dead letters"]
    assert run.lines("dead-letters", "list") == ["no dead letters"]
    assert run.lines("dead-letters", "groups") == ["no dead letters"]
    assert run.lines("dead-letters", "audit") == ["nothing was done"]


def test_letters_are_a_table(letters: DeskRun) -> None:
    heading, *rows = letters.lines("dead-letters")

    assert heading.split() == [
        *("NUMBER", "TIME", "STATUS", "SUBSCRIBER", "EVENT", "TRIES", "REASON")
    ]
    assert rows[0].split()[2:] == [
        *("open", "me", "t", "0", "1", "no,", "thank", "you")
    ]
    assert json.loads(letters.lines("dead-letters", "--json")[0])[0]["number"] == 0


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], [0, 1, 2]),
        (["--subscriber", "me"], [0, 1]),
        (["--topic", "other"], []),
        (["--gateway", "delivery", "--reason", "THANK"], [0, 1, 2]),
        (["--error", "Refused"], [0, 1, 2]),
        (["--error", "KeyError"], []),
        (["--since", "1h"], [0, 1, 2]),
        (["--until", "1h"], []),
        (["--since", "2001-01-01", "--until", "2001-01-02"], []),
        (["--from", "1"], [1, 2]),
        (["--count", "1"], [0]),
    ],
)
def test_the_list_can_be_narrowed(
    letters: DeskRun, options: list[str], found: list[int]
) -> None:
    assert numbers(letters, *options) == found


def test_closed_letters_are_listed_if_asked_for(letters: DeskRun) -> None:
    letters.ask("dead-letters.drop", numbers=[1], reason="old")

    assert numbers(letters) == [0, 2]
    assert numbers(letters, "--all") == [0, 1, 2]
    assert numbers(letters, "--status", "dropped") == [1]


def test_many_letters_are_asked_for_a_page_at_a_time(
    letters: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (plan, redrive, trails):
        monkeypatch.setattr(module, "MAX_ROWS", 1)

    assert numbers(letters) == [0, 1, 2]


def test_letters_that_are_alike_are_counted(letters: DeskRun) -> None:
    heading, first, second = letters.lines("dead-letters", "groups")
    (line,) = letters.lines("dead-letters", "groups", "--subscriber", "you", "--json")

    assert heading.split()[:4] == ["COUNT", "SUBSCRIBER", "TOPIC", "ERROR"]
    assert first.split()[:4] == ["2", "me", "t", "Refused"]
    assert second.split()[:4] == ["1", "you", "t", "Refused"]
    assert [(one["count"], one["example"]) for one in json.loads(line)] == [(1, 2)]


def test_a_letter_is_shown_with_its_event_and_every_try(run: DeskRun) -> None:
    run.bury(
        "t", "me", b'{"a": 1}', error="no 17", kind="KeyError", traceback=TRACEBACK
    )

    lines = run.lines("dead-letters", "show", "0")

    assert "event       offset 0 of t" in lines
    assert lines[lines.index("payload:") + 1 :][:3] == ["  {", '    "a": 1', "  }"]
    (tried,) = [line for line in lines if line.startswith("try 1 at ")]
    assert tried.endswith(": KeyError: no 17")
    assert lines[-1] == "      raise \\x1b[31m"
    (line,) = run.lines("dead-letters", "show", "0", "--json")
    assert json.loads(line)["failures"][0]["traceback"] == TRACEBACK


def test_a_letter_is_shown_with_who_closed_it(letters: DeskRun) -> None:
    letters.ask("dead-letters.drop", numbers=[1], reason="old", by="anna")

    assert "dropped by anna at " in letters.lines("dead-letters", "show", "1")[-1]


def test_the_audit_tells_who_did_what(letters: DeskRun) -> None:
    letters.ask("dead-letters.republish", numbers=[0, 1], by="bert")
    letters.ask("dead-letters.drop", numbers=[2], reason="too old", by="anna")

    heading, first, second = letters.lines("dead-letters", "audit")

    assert heading.split()[:4] == ["TIME", "BY", "ACTION", "LETTERS"]
    assert first.split()[1:] == ["anna", "dropped", "2", "you", "t", "too", "old"]
    assert second.split()[1:] == ["bert", "republished", "0-1", "me", "t", "-"]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], [1, 0]),
        (["--by", "anna"], [1]),
        (["--action", "republished"], [0]),
        (["--subscriber", "me"], [0]),
        (["--topic", "u"], []),
        (["--number", "0"], [0]),
        (["--since", "1h"], [1, 0]),
        (["--until", "1h"], []),
        (["--count", "1"], [1]),
    ],
)
def test_the_audit_can_be_narrowed(
    letters: DeskRun,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    found: list[int],
) -> None:
    for module in (plan, redrive, trails):
        monkeypatch.setattr(module, "MAX_ROWS", 1)
    letters.ask("dead-letters.republish", numbers=[0, 1], by="bert")
    letters.ask("dead-letters.drop", numbers=[2], reason="too old", by="anna")

    (line,) = letters.lines("dead-letters", "audit", *options, "--json")

    assert [one["entry"] for one in json.loads(line)] == found


def test_an_unknown_letter_is_refused(letters: DeskRun) -> None:
    said = letters.refused("dead-letters", "show", "9")

    assert said == "error: dead letter 9 does not exist\n"
