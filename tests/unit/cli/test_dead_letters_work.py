from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from penstock.cli import dead_letters_work
from penstock.client import redrive
from tests.unit.cli.desk_run import DeskRun


@pytest.fixture
def letters(run: DeskRun) -> DeskRun:
    """Letters 0 and 1 of ``me``, 2 of ``you``; all events are those of ``t``."""
    run.bury("t", "me", b'{"n":0}', b"one")
    run.client.subscribe("t", "you").close()
    run.bury("t", "you", b"two")
    return run


def numbers(run: DeskRun, *options: str) -> list[int]:
    lines = run.lines("dead-letters", "list", *options, "--json")
    return [one["number"] for one in json.loads(lines[0])]


def test_republished_letters_go_to_their_subscription_once(letters: DeskRun) -> None:
    first = letters.lines("dead-letters", "republish", "1")
    again = letters.lines("dead-letters", "republish", "1")

    assert first == ["dead letter 1: republished"]
    assert again == ["dead letter 1: republished before"]
    assert numbers(letters) == [0, 2]
    assert letters.lines("subscribe", "t", "--as", "me", "--count", "1") == ["one"]


def test_a_dry_run_tells_and_does_nothing(letters: DeskRun) -> None:
    by_filter = letters.lines(
        *("dead-letters", "republish", "--all", "--subscriber", "you", "--dry-run")
    )
    by_number = letters.lines("dead-letters", "drop", "0", "--dry-run", "--json")

    assert by_filter == ["dead letter 2: would be republished"]
    assert [one["text"] for one in json.loads(by_number[0])] == ["would be dropped"]
    assert numbers(letters) == [0, 1, 2]


def test_all_that_match_are_republished(letters: DeskRun) -> None:
    (line,) = letters.lines(
        *("dead-letters", "republish", "--all", "--subscriber", "me", "--json")
    )

    assert [(one["number"], one["done"]) for one in json.loads(line)] == [
        (0, True),
        (1, True),
    ]
    assert numbers(letters) == [2]
    assert letters.lines("dead-letters", "republish", "--all") == ["1 of 1 republished"]
    assert letters.lines("dead-letters", "republish", "--all") == ["no dead letters"]


def test_all_that_are_alike_are_republished(letters: DeskRun) -> None:
    letters.bury("t", "me", b"three", error="another reason")

    lines = letters.lines("dead-letters", "republish", "--like", "0", "--since", "1h")

    assert lines == ["2 of 2 republished"]
    assert numbers(letters) == [2, 3]


def test_a_rate_takes_its_time(
    letters: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("penstock.cli.connect.sleep", slept.append)

    letters.lines("dead-letters", "republish", "0", "1", "2", "--rate", "0.5")

    assert slept == [pytest.approx(2, abs=0.5), pytest.approx(4, abs=0.5)]
    assert "must be above 0" in letters.refused(
        *("dead-letters", "republish", "--all", "--rate", "0")
    )


def test_what_cannot_be_republished_is_said_and_the_others_are(
    letters: DeskRun,
) -> None:
    letters.ask("subscriptions.forget", subscriber="me", topic="t")

    result = letters("dead-letters", "republish", "0", "2")

    assert result.exit_code == 2
    assert result.stdout == "dead letter 2: republished\n"
    assert result.stderr == "dead letter 0: me has no subscription to t any more\n"


def test_of_many_problems_some_are_told(
    letters: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters_work, "MAX_PROBLEMS", 1)
    letters.ask("subscriptions.forget", subscriber="me", topic="t")

    result = letters("dead-letters", "republish", "--all")

    assert result.exit_code == 2
    assert result.stdout == "1 of 3 republished, 2 not\n"
    assert result.stderr == (
        "dead letter 0: me has no subscription to t any more\n… 1 more like these\n"
    )


def test_the_audit_knows_the_user_of_this_machine(
    letters: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "anna")

    letters.lines("dead-letters", "republish", "1")
    letters.lines("dead-letters", "drop", "0", "--because", "old", "--yes")

    entries = letters.ask("dead-letters.audit")["entries"]
    assert [(one["by"], one["reason"]) for one in entries] == [
        ("anna", "old"),
        ("anna", ""),
    ]


# Editing


def edited(run: DeskRun) -> bytes:
    """The payload that ``me`` gets."""
    with run.client.subscribe("t", "me", tries=1) as subscription:
        delivery = subscription.next(5.0)
        assert delivery is not None
        subscription.ack(delivery)
        return delivery.payload


def test_a_payload_is_given_as_text(letters: DeskRun) -> None:
    lines = letters.lines("dead-letters", "republish", "1", "--payload", "better")

    assert lines == ["dead letter 1: edited and republished"]
    assert edited(letters) == b"better"


def test_a_payload_comes_from_a_file_or_from_standard_input(
    letters: DeskRun, tmp_path: Path
) -> None:
    file = tmp_path / "payload"
    file.write_bytes(b"\x00 better\n")

    letters.lines("dead-letters", "republish", "1", "--edit", str(file))
    result = letters("dead-letters", "republish", "0", "--edit", "-", input=b"in")

    assert result.exit_code == 0
    with letters.client.subscribe("t", "me", tries=1) as subscription:
        found = [subscription.next(5.0), subscription.next(5.0)]
    assert [one.payload for one in found if one] == [b"in", b"\x00 better\n"]


def test_a_payload_is_edited_in_an_editor(
    letters: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[str, str]] = []

    def editor(text: str, extension: str) -> str:
        shown.append((text, extension))
        return text.replace("0", "1") + "\n"

    monkeypatch.setattr(click, "edit", editor)

    letters.lines("dead-letters", "republish", "0", "--editor", "--because", "typo")

    assert shown == [('{\n  "n": 0\n}', ".json")]
    assert edited(letters) == b'{"n":1}'
    (entry,) = letters.ask("dead-letters.audit")["entries"]
    assert (entry["action"], entry["reason"]) == ("edited", "typo")
    assert (entry["old"], entry["new"]) == (b'{"n":0}', b'{"n":1}')


@pytest.mark.parametrize(
    ("number", "after", "said"),
    [
        ("0", None, "nothing was changed"),
        ("0", '{\n  "n": 0\n}\n', "nothing was changed"),
        ("0", "{", "no JSON any more"),
        ("1", "one\n", "nothing was changed"),
    ],
)
def test_an_editor_that_changes_nothing_sends_nothing(
    letters: DeskRun,
    monkeypatch: pytest.MonkeyPatch,
    number: str,
    after: str | None,
    said: str,
) -> None:
    monkeypatch.setattr(click, "edit", lambda text, extension: after)

    assert said in letters.refused("dead-letters", "republish", number, "--editor")
    assert numbers(letters) == [0, 1, 2]


def test_text_is_edited_as_text(
    letters: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click, "edit", lambda text, extension: "two\n")

    letters.lines("dead-letters", "republish", "1", "--editor")

    assert edited(letters) == b"two"


def test_bytes_are_not_edited_as_text(run: DeskRun) -> None:
    run.bury("t", "me", b"\xff\x00")

    assert "is no text" in run.refused("dead-letters", "republish", "0", "--editor")


def test_a_dry_run_of_an_edit_does_nothing(letters: DeskRun) -> None:
    (line,) = letters.lines(
        *("dead-letters", "republish", "1", "--payload", "x", "--dry-run", "--json")
    )

    assert json.loads(line)[0]["text"] == "would be edited and republished"
    assert numbers(letters) == [0, 1, 2]


def test_an_edit_that_cannot_be_is_said(letters: DeskRun) -> None:
    letters.ask("subscriptions.forget", subscriber="me", topic="t")

    said = letters.refused("dead-letters", "republish", "1", "--payload", "x")

    assert said == "dead letter 1: me has no subscription to t any more\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--payload", "x", "--all"],
        ["0", "1", "--payload", "x"],
        ["0", "--payload", "x", "--editor"],
        ["--like", "0", "--edit", "-"],
    ],
)
def test_an_edit_is_of_one_letter(letters: DeskRun, arguments: list[str]) -> None:
    said = letters.refused("dead-letters", "republish", *arguments)

    assert said.startswith("error: an edit is of one letter")


# Dropping


def test_dropped_letters_are_closed(letters: DeskRun) -> None:
    assert "--because" in letters.refused("dead-letters", "drop", "0", "--yes")
    assert "--yes" in letters.refused("dead-letters", "drop", "0", "--because", "old")

    lines = letters.lines(
        *("dead-letters", "drop", "--all", "--reason", "no", "--yes"),
        *("--because", "a test"),
    )

    assert lines == ["3 of 3 dropped"]
    assert numbers(letters) == []


def test_numbers_are_dropped_one_by_one(letters: DeskRun) -> None:
    lines = letters.lines(
        *("dead-letters", "drop", "0", "2", "--because", "old", "--yes")
    )

    assert lines == ["dead letter 0: dropped", "dead letter 2: dropped"]


# Which


@pytest.mark.parametrize("verb", ["republish", "drop"])
@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["0", "--all"],
        ["0", "--subscriber", "me"],
        ["--topic", "t"],
        ["0", "--like", "1"],
        ["--all", "--like", "1"],
        ["--like", "1", "--topic", "t"],
    ],
)
def test_it_has_to_be_said_which(
    letters: DeskRun, verb: str, arguments: list[str]
) -> None:
    said = letters.refused("dead-letters", verb, *arguments, "--dry-run")

    assert said.startswith("error: say which")


def test_an_unknown_letter_is_refused(letters: DeskRun) -> None:
    for arguments in (
        ["republish", "9"],
        ["republish", "9", "--payload", "x"],
        ["republish", "--like", "9"],
        ["drop", "9", "--yes", "--because", "old"],
    ):
        said = letters.refused("dead-letters", *arguments)
        assert said == "error: dead letter 9 does not exist\n"


def test_an_interrupted_run_says_how_far_it_got(
    letters: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redrive, "MAX_ROWS", 1)

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("penstock.cli.connect.sleep", interrupt)

    result = letters("dead-letters", "republish", "--all", "--rate", "1")

    assert result.exit_code == 130
    assert result.stderr == "stopped: 1 of 3 republished; run it again to go on\n"
    assert numbers(letters) == [1, 2]
