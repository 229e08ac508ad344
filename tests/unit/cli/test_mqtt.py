from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from penstock.broker.broker import Broker
from penstock.client import plan
from penstock.log import Columns, Log
from penstock.sessions import TopicFilter
from tests.unit.cli.desk_run import DeskRun, desk_run
from tests.unit.desk.office import Outlet


@pytest.fixture
def run(tmp_path: Path) -> Iterator[DeskRun]:
    """Sessions of ann, with two events owed, and bob; messages of a/1 and a/2."""
    arrange(tmp_path / "data")
    with desk_run(tmp_path / "data") as run:
        yield run


def arrange(data: Path) -> None:
    with Broker(partial(Log.open, data)) as broker:
        for name, filter_ in (("ann", "a/#"), ("bob", "b")):
            session, _ = broker.sessions.open(name, clean=False, expiry_s=None)
            broker.sessions.attach(session, Outlet())
            broker.sessions.subscribe(session, TopicFilter(filter_, 1))
        for topic in ("a/1", "a/2"):
            broker.create_topic(topic)
            broker.retained.append(topic, Columns([b"warm"], 1000))
        broker.log.commit()


def test_sessions_are_a_table(run: DeskRun) -> None:
    headings, ann, bob = run.lines("mqtt", "sessions")

    assert headings.split()[:4] == ["CLIENT", "USER", "STATE", "SINCE"]
    assert ann.split()[:3] == ["ann", "-", "away"]
    assert ann.endswith("2 on 2 topics  a/# (1)")
    assert bob.endswith("-              b (1)")


def test_sessions_are_json(run: DeskRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "PAGE_ROWS", 1)

    ann, bob = json.loads(run.lines("mqtt", "sessions", "--json")[0])

    assert (ann["client"], ann["lag"], ann["expires_in_s"]) == ("ann", 2, None)
    assert bob["filters"][0]["filter"] == "b"


def test_sessions_are_found_by_filter_and_state(run: DeskRun) -> None:
    assert len(run.lines("mqtt", "sessions", "--filter", "+/1")) == 2
    assert run.lines("mqtt", "sessions", "--state", "connected") == ["no sessions"]
    assert "topic filter" in run.refused("mqtt", "sessions", "--filter", "a#")


def test_one_session_is_shown(run: DeskRun) -> None:
    lines = run.lines("mqtt", "session", "ann")
    found = json.loads(run.lines("mqtt", "session", "ann", "--json")[0])

    assert lines[0].split() == ["client", "ann"]
    assert [line.split()[0] for line in lines[-3:]] == ["TOPIC", "a/1", "a/2"]
    assert [one["topic"] for one in found["topics"]] == ["a/1", "a/2"]


def test_a_client_without_a_session_is_said(run: DeskRun) -> None:
    error = run.refused("mqtt", "session", "cy")

    assert error.startswith("error: client cy has no session\nhint: ")


def test_a_session_ends_when_somebody_means_it(run: DeskRun) -> None:
    asked = run.refused("mqtt", "end", "ann")
    ended = run.lines("mqtt", "end", "ann", "--yes")
    gone = json.loads(run.lines("mqtt", "end", "bob", "--yes", "--json")[0])

    assert "End the session of ann with 1 subscription and 2 unsettled events?" in asked
    assert ended == ["ended the session of ann"]
    assert gone["client"] == "bob"
    assert run.lines("mqtt", "sessions") == ["no sessions"]
    assert run.lines("subscriptions") == ["no subscriptions"]


def test_retained_messages_are_a_table(
    run: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "PAGE_ROWS", 1)

    headings, first, second = (line.split() for line in run.lines("mqtt", "retained"))

    assert headings == ["TOPIC", "SIZE", "QOS", "PUBLISHED", "EXPIRES"]
    assert first == ["a/1", "4", "B", "2", "1970-01-01T00:00:01.000Z", "never"]
    assert second[0] == "a/2"


def test_retained_messages_are_json(run: DeskRun) -> None:
    (found,) = json.loads(run.lines("mqtt", "retained", "+/2", "--json")[0])

    assert (found["topic"], found["bytes"], found["qos"]) == ("a/2", 4, 2)
    assert run.lines("mqtt", "retained", "c") == ["no retained messages"]


def test_one_message_is_shown_with_its_payload(run: DeskRun) -> None:
    lines = run.lines("mqtt", "message", "a/1")
    found = json.loads(run.lines("mqtt", "message", "a/1", "--json")[0])

    assert lines[0].split() == ["topic", "a/1"]
    assert lines[-1] == "warm"
    assert found["payload"] == "d2FybQ=="


def test_a_message_is_forgotten_when_somebody_means_it(run: DeskRun) -> None:
    asked = run.refused("mqtt", "forget", "a/1")
    done = run.lines("mqtt", "forget", "a/1", "--yes")
    gone = json.loads(run.lines("mqtt", "forget", "a/2", "--yes", "--json")[0])

    assert "Forget the retained message of a/1, 4 B?" in asked
    assert done == ["forgot the retained message of a/1"]
    assert (gone["topic"], "payload" in gone) == ("a/2", False)
    assert run.lines("mqtt", "retained") == ["no retained messages"]
    assert "has no retained message" in run.refused("mqtt", "message", "a/1")


def test_files_are_worked_on_where_no_server_runs(run: DeskRun) -> None:
    run.server.stop()

    assert run.lines("mqtt", "end", "ann", "--yes") == ["ended the session of ann"]
    assert run.lines("mqtt", "forget", "a/1", "--yes")[0].startswith("forgot")
    assert [line.split()[0] for line in run.lines("mqtt", "sessions")[1:]] == ["bob"]
    assert [line.split()[0] for line in run.lines("mqtt", "retained")[1:]] == ["a/2"]
