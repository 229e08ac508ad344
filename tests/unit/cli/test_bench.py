from __future__ import annotations

import json

import pytest

from penstock.cli import bench
from penstock.cli.refusal import Refusal
from penstock.client import Client
from penstock.model.remote_errors import remote_error
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


def refuse_to_delete(monkeypatch: pytest.MonkeyPatch, *, empty: bool) -> None:
    """``empty``: also a topic that is not there yet."""
    ask = Client.ask

    def refusing(self: Client, verb: str, /, **arguments: object) -> object:
        known = ask(self, "topics")
        assert isinstance(known, dict)
        if verb == "topics.delete" and (empty or known["topics"]):
            raise remote_error("NotAllowed", "you may not", "ask somebody")
        return ask(self, verb, **arguments)

    monkeypatch.setattr(Client, "ask", refusing)


def test_whoever_may_not_delete_the_topic_gets_none(
    run: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_delete(monkeypatch, empty=True)

    said = run.refused("bench", "--for", "1ms")

    assert said == "error: you may not\nhint: ask somebody\n"
    assert run.ask("topics")["topics"] == []


def test_a_topic_that_is_left_behind_is_named(
    run: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_to_delete(monkeypatch, empty=False)

    result = run("bench", "--for", "1ms")

    (left,) = run.ask("topics")["topics"]
    assert result.exit_code == 2
    assert len(result.stdout.splitlines()) == 1 + len(ROWS)
    assert result.stderr == (
        f"error: topic {left['name']} is left behind: you may not\n"
        f"hint: delete it with 'penstock topics delete {left['name']}'\n"
    )
