from __future__ import annotations

import json

import pytest

from penstock.client import plan
from tests.unit.cli.desk_run import DeskRun


@pytest.fixture
def two(run: DeskRun) -> DeskRun:
    """``me`` and ``you`` on ``t``, where ``me`` owes event 0 and has failed once."""
    run.client.publish("t", [b"0", b"1", b"2"])
    run.client.publish("u", b"0")
    run.client.subscribe("t", "you").close()
    run.client.subscribe("u", "you").close()
    subscription = run.client.subscribe("t", "me", start="earliest", window=1)
    delivery = subscription.next(5.0)
    assert delivery is not None
    subscription.nack(delivery, "no\nway")
    assert subscription.next(5.0) is not None
    subscription.close()
    return run


def rows(lines: list[str]) -> list[list[str]]:
    return [line.split() for line in lines[1:]]


def test_without_subscriptions_there_are_none(run: DeskRun) -> None:
    assert run.lines("subscriptions") == ["no subscriptions"]
    assert run.lines("subscriptions", "--json") == ["[]"]


def test_subscriptions_are_a_table(two: DeskRun) -> None:
    assert rows(two.lines("subscriptions")) == [
        ["me", "t", "away", "0", "3", "0", "0"],
        ["you", "t", "away", "3", "0", "0", "0"],
        ["you", "u", "away", "1", "0", "0", "0"],
    ]


def test_subscriptions_of_several_pages_are_one_list(
    two: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "PAGE_ROWS", 1)

    assert len(json.loads(two.lines("subscriptions", "--json")[0])) == 3


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--subscriber", "you"], [("you", "t"), ("you", "u")]),
        (["--topic", "t"], [("me", "t"), ("you", "t")]),
        (["--topic", "u", "--subscriber", "me"], []),
    ],
)
def test_the_list_can_be_narrowed(
    two: DeskRun, options: list[str], found: list[tuple[str, str]]
) -> None:
    listed = json.loads(two.lines("subscriptions", *options, "--json")[0])

    assert [(one["subscriber"], one["topic"]) for one in listed] == found


def test_a_temporary_subscriber_is_marked(run: DeskRun) -> None:
    run.client.publish("t", b"0")
    run.client.subscribe("t")

    assert "connected, temporary" in run.lines("subscriptions")[1]


def test_a_subscription_is_shown_with_what_it_owes(two: DeskRun) -> None:
    lines = two.lines("subscriptions", "show", "me", "t")

    assert "window       1" in lines
    assert "tries        no limit" in lines
    assert "pause        none" in lines
    assert lines[-1].split() == ["0", "-", "waiting", "2", "-", "no\\nway"]


def test_a_subscription_is_an_object_in_json(two: DeskRun) -> None:
    (line,) = two.lines("subscriptions", "show", "me", "t", "--json")

    assert json.loads(line)["deliveries"][0]["errors"] == ["no\nway"]


def test_a_forgotten_subscription_is_gone(two: DeskRun) -> None:
    assert "--yes" in two.refused("subscriptions", "forget", "me", "t")

    lines = two.lines("subscriptions", "forget", "me", "t", "--yes")

    assert lines == ["forgot the subscription of me to t"]
    said = two.refused("subscriptions", "show", "me", "t")
    assert said == "error: subscriber me has no subscription to t\n"
    (line,) = two.lines("subscriptions", "forget", "you", "t", "--yes", "--json")
    assert json.loads(line)["subscriber"] == "you"


def test_a_subscription_is_moved(two: DeskRun) -> None:
    lines = two.lines("subscriptions", "seek", "me", "t", "--to", "2")
    (line,) = two.lines(
        "subscriptions", "seek", "you", "t", "--to", "1999-01-01", "--json"
    )

    assert lines == ["me goes on at offset 2 of t"]
    assert json.loads(line) == {"subscriber": "you", "topic": "t", "position": 0}
    assert rows(two.lines("subscriptions"))[0][3:5] == ["2", "1"]


def test_seeking_needs_a_place(two: DeskRun) -> None:
    assert two("subscriptions", "seek", "me", "t").exit_code == 2
    assert "no place" in two.refused("subscriptions", "seek", "me", "t", "--to", "x")


def test_a_subscription_is_resumed(two: DeskRun) -> None:
    said = two.lines("subscriptions", "resume", "me", "t")
    row = json.loads(two.lines("subscriptions", "resume", "me", "t", "--json")[0])

    assert said == ["the subscription of me to t is away"]
    assert (row["subscriber"], row["state"]) == ("me", "away")
    assert "nobody" in two.refused("subscriptions", "resume", "nobody", "t")
