from __future__ import annotations

import json

import pytest

from penstock.cli import dead_letters
from tests.unit.cli.desk_run import DeskRun


@pytest.fixture
def letters(run: DeskRun) -> DeskRun:
    """Letters 0 and 1 of ``me``, 2 of ``you``; all events are those of ``t``."""
    run.bury("t", "me", b"zero", b"one")
    run.client.subscribe("t", "you", start=1).close()
    run.bury("t", "you", b"two")
    return run


def numbers(run: DeskRun, *options: str) -> list[int]:
    lines = run.lines("dead-letters", "list", *options, "--json")
    return [one["number"] for one in json.loads(lines[0])]


def test_without_letters_there_are_none(run: DeskRun) -> None:
    assert run.lines("dead-letters") == ["no dead letters"]
    assert run.lines("dead-letters", "list") == ["no dead letters"]
    assert run.lines("dead-letters", "republish", "--all") == ["no dead letters"]


def test_letters_are_a_table(letters: DeskRun) -> None:
    heading, *rows = letters.lines("dead-letters")

    assert heading.split() == [
        *("NUMBER", "TIME", "STATUS", "SUBSCRIBER", "EVENT", "TRIES", "REASON")
    ]
    assert rows[0].split()[2:] == [
        *("open", "me", "t", "0", "1", "no,", "thank", "you")
    ]
    assert json.loads(letters.lines("dead-letters", "--json")[0])[0]["number"] == 0


def test_a_long_reason_is_shortened_in_the_table(run: DeskRun) -> None:
    run.client.publish("t", b"x")
    with run.client.subscribe("t", "me", start=0, tries=1) as subscription:
        delivery = subscription.next(5.0)
        assert delivery is not None
        subscription.nack(delivery, "r" * 100)

    assert run.lines("dead-letters")[1].endswith(" " + "r" * 59 + "…")


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ([], [0, 1, 2]),
        (["--subscriber", "me"], [0, 1]),
        (["--topic", "other"], []),
        (["--gateway", "delivery", "--reason", "THANK"], [0, 1, 2]),
        (["--from", "1"], [1, 2]),
        (["--count", "1"], [0]),
    ],
)
def test_the_list_can_be_narrowed(
    letters: DeskRun, options: list[str], found: list[int]
) -> None:
    assert numbers(letters, *options) == found


def test_many_letters_are_asked_for_a_page_at_a_time(
    letters: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "MAX_ROWS", 1)

    assert numbers(letters) == [0, 1, 2]
    results = letters.lines("dead-letters", "republish", "0", "1", "2")
    assert len(results) == 3


def test_a_letter_is_shown_with_its_event(letters: DeskRun) -> None:
    lines = letters.lines("dead-letters", "show", "1")

    assert "event       offset 1 of t" in lines
    assert "try 1       no, thank you" in lines
    assert lines[-1] == "payload     one"
    letters.ask("topics.delete", name="t")
    assert letters.lines("dead-letters", "show", "1")[-1] == "payload     gone"
    (line,) = letters.lines("dead-letters", "show", "1", "--json")
    assert json.loads(line)["event"] is None


def test_republished_letters_go_to_their_subscription_once(letters: DeskRun) -> None:
    first = letters.lines("dead-letters", "republish", "1")
    again = letters.lines("dead-letters", "republish", "1")

    assert first == ["dead letter 1: republished"]
    assert again == ["dead letter 1: republished before"]
    assert numbers(letters) == [0, 2]
    assert numbers(letters, "--all") == [0, 1, 2]
    assert letters.lines("subscribe", "t", "--as", "me", "--count", "1") == ["one"]


def test_a_dry_run_shows_and_does_nothing(letters: DeskRun) -> None:
    by_filter = letters.lines(
        *("dead-letters", "republish", "--all", "--subscriber", "you", "--dry-run")
    )
    by_number = letters.lines("dead-letters", "drop", "0", "--dry-run", "--json")

    assert [line.split()[0] for line in by_filter] == ["NUMBER", "2"]
    assert [one["number"] for one in json.loads(by_number[0])] == [0]
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


def test_what_cannot_be_republished_is_said_and_the_others_are(
    letters: DeskRun,
) -> None:
    letters.ask("subscriptions.forget", subscriber="me", topic="t")

    result = letters("dead-letters", "republish", "0", "2")

    assert result.exit_code == 2
    assert result.stdout == "dead letter 2: republished\n"
    assert result.stderr == "dead letter 0: me has no subscription to t any more\n"


def test_dropped_letters_are_closed(letters: DeskRun) -> None:
    assert "--yes" in letters.refused("dead-letters", "drop", "0")

    lines = letters.lines(
        *("dead-letters", "drop", "--all", "--reason", "no", "--yes"),
        *("--because", "a test"),
    )

    assert lines == [f"dead letter {number}: dropped" for number in range(3)]
    assert numbers(letters) == []


@pytest.mark.parametrize("verb", ["republish", "drop"])
@pytest.mark.parametrize(
    "arguments", [[], ["0", "--all"], ["0", "--subscriber", "me"], ["--topic", "t"]]
)
def test_either_numbers_or_all_has_to_be_said(
    letters: DeskRun, verb: str, arguments: list[str]
) -> None:
    said = letters.refused("dead-letters", verb, *arguments, "--dry-run")

    assert said.startswith("error: say which")


def test_an_unknown_letter_is_refused(letters: DeskRun) -> None:
    for arguments in (["show", "9"], ["republish", "9"], ["drop", "9", "--yes"]):
        said = letters.refused("dead-letters", *arguments)
        assert said == "error: dead letter 9 does not exist\n"
