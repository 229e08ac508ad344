from __future__ import annotations

import json

import pytest

from penstock.client import plan
from tests.unit.cli.desk_run import DeskRun


def test_without_topics_it_says_what_to_do(run: DeskRun) -> None:
    assert run.lines("topics") == ["no topics yet: publish something, or create one"]
    assert run.lines("topics", "--json") == ["[]"]


def test_topics_are_a_table(run: DeskRun) -> None:
    run.client.publish("orders", [b"0", b"1"])
    run.client.subscribe("orders")
    run.ask("topics.create", name="t", durability="os")

    heading, orders, t = run.lines("topics")

    assert heading.split() == [
        *("TOPIC", "OFFSETS", "EVENTS", "SIZE", "DURABILITY", "SUBSCRIPTIONS")
    ]
    assert orders.split()[:3] == ["orders", "0..2", "2"]
    assert orders.split()[-2:] == ["sync", "1"]
    assert t.split() == ["t", "0..0", "0", "0", "B", "os", "0"]
    assert heading.index("SIZE") == t.index("0 B")


def test_topics_of_several_pages_are_one_list(
    run: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c", "d", "e"):
        run.ask("topics.create", name=name)
    monkeypatch.setattr(plan, "PAGE_ROWS", 2)

    found = json.loads(run.lines("topics", "--json")[0])

    assert [topic["name"] for topic in found] == ["a", "b", "c", "d", "e"]


def test_own_topics_are_shown_if_asked_for(run: DeskRun) -> None:
    run.bury("t", "me", b"0")

    assert not any("$dead-letters" in line for line in run.lines("topics"))
    assert any("$dead-letters" in line for line in run.lines("topics", "--own"))


def test_a_topic_is_created_and_shown(run: DeskRun) -> None:
    created = run.lines(
        *("topics", "create", "t", "--durability", "os", "--compact"),
        *("--retention-age", "60", "--retention-bytes", "2048"),
    )
    run.client.subscribe("t", "me").close()

    lines = run.lines("topics", "show", "t")

    assert created == ["created topic t"]
    assert "durability  os" in lines
    kept = "kept        for 60 s, up to 2.0 KiB, the last event of each key"
    assert kept in lines
    assert lines[-1].split()[:3] == ["me", "t", "away"]


def test_settings_that_are_left_out_are_the_servers(run: DeskRun) -> None:
    (line,) = run.lines("topics", "create", "t", "--json")

    topic = json.loads(line)
    assert (topic["durability"], topic["compact"]) == ("sync", False)
    assert "kept        everything" in run.lines("topics", "show", "t")


def test_a_topic_is_deleted_for_good(run: DeskRun) -> None:
    run.client.publish("t", [b"0", b"1"])
    assert "--yes" in run.refused("topics", "delete", "t")

    lines = run.lines("topics", "delete", "t", "--yes")

    assert lines == ["deleted topic t with 2 events"]
    assert run.refused("topics", "show", "t") == "error: topic t does not exist\n"


def test_the_deleted_topic_is_an_object_in_json(run: DeskRun) -> None:
    run.client.publish("t", b"0")

    (line,) = run.lines("topics", "delete", "t", "--yes", "--json")

    assert json.loads(line)["events"] == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["create", "t"], "topic t exists already"),
        (["create", "$x"], "name $x is reserved"),
        (["create", "u", "--retention-age", "-1"], "retention_age_s is -1.0"),
        (["delete", "none", "--yes"], "topic none does not exist"),
    ],
)
def test_what_cannot_be_is_refused(
    run: DeskRun, arguments: list[str], text: str
) -> None:
    run.client.publish("t", b"0")

    assert text in run.refused("topics", *arguments)


@pytest.mark.parametrize(
    "option",
    ["--retention-age=nan", "--retention-age=inf", "--retention-age=-inf"],
)
def test_an_age_that_never_comes_is_refused_in_one_line(
    run: DeskRun, option: str
) -> None:
    said = run.refused("topics", "create", "t", option)

    assert said.startswith("error: option retention_age_s is ")
    assert said.count("\n") == 1
    assert run.lines("topics", "--json") == ["[]"]
