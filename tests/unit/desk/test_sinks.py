from __future__ import annotations

from typing import Any

import pytest

from penstock.broker.epochs import stage
from penstock.desk.views.sinks import Aborted, Committed, SinkPage, SinkRow
from penstock.errors import InvalidArgument, InvalidOption, MissingStage
from penstock.log import Columns
from tests.unit.desk.office import Office


def ask(office: Office, verb: str, **arguments: Any) -> Any:
    return office.desk.ask(verb, arguments)


def put(office: Office, query: str, epoch: int, *payloads: bytes) -> None:
    columns = Columns(payloads)
    stage(office.broker, query, epoch, (0, 0), 0, "t", columns, office.now_s)


def test_an_epoch_is_committed_once(office: Office) -> None:
    put(office, "q", 0, b"a", b"b")

    first = ask(office, "sinks.commit", query="q", epoch=0, parts=[[0, 0]])
    office.commit()
    second = ask(office, "sinks.commit", query="q", epoch=0, parts=[[0, 0]])

    assert first == Committed(committed=True, before=False, events=2)
    assert second == Committed(committed=True, before=True, events=0)
    assert office.broker.log.topic("t").end_offset == 2


def test_aborting_tells_what_was_dropped(office: Office) -> None:
    put(office, "q", 0, b"a")
    staged = office.broker.sinks.staging.bytes

    assert ask(office, "sinks.abort", query="q", epoch=0) == Aborted(
        dropped_bytes=staged
    )
    assert ask(office, "sinks.abort", query="q", epoch=0).dropped_bytes == 0
    with pytest.raises(MissingStage):
        ask(office, "sinks.commit", query="q", epoch=0, parts=[[0, 0]])


def test_sinks_are_listed_with_what_is_staged(office: Office) -> None:
    put(office, "b", 4, b"a")
    ask(office, "sinks.commit", query="b", epoch=4, parts=[[0, 0]])
    office.commit()
    put(office, "b", 5, b"a")
    put(office, "a", 0, b"a")
    put(office, "c", 0, b"a")
    size = office.broker.sinks.staging.bytes // 3

    page = ask(office, "sinks", limit=2)

    assert page == SinkPage(
        sinks=[
            SinkRow(
                query="a",
                epoch=None,
                at_ms=None,
                events=None,
                staged_epochs=1,
                staged_bytes=size,
            ),
            SinkRow(
                query="b",
                epoch=4,
                at_ms=office.broker.log.now_ms(),
                events=1,
                staged_epochs=1,
                staged_bytes=size,
            ),
        ],
        more=True,
    )
    rest = ask(office, "sinks", after="b")
    assert ([one.query for one in rest.sinks], rest.more) == (["c"], False)


def test_a_query_that_ended_is_known_and_not_listed(office: Office) -> None:
    put(office, "w", 0, b"a")
    commit = {"query": "w", "epoch": 0, "parts": [[0, 0]], "last": True}

    assert not ask(office, "sinks.commit", **commit).before
    office.commit()

    assert ask(office, "sinks.commit", **commit).before
    assert ask(office, "sinks").sinks == []


@pytest.mark.parametrize(
    "wrong", [{"epoch": -1}, {"parts": [[0]]}, {"parts": [[0, -1]]}, {"query": 5}]
)
def test_what_cannot_be_an_epoch_is_refused(office: Office, wrong: dict) -> None:
    arguments = {"query": "q", "epoch": 0, "parts": [], **wrong}

    with pytest.raises(InvalidArgument):
        ask(office, "sinks.commit", **arguments)


def test_a_note_and_letters_are_stored_with_their_epoch(office: Office) -> None:
    put(office, "q", 0, b"a")
    given = {"note": "0/1A", "letters": [["panic", b"\xff"]], "gateway": "cdc"}

    done = ask(office, "sinks.commit", query="q", epoch=0, parts=[[0, 0]], **given)
    office.commit()
    again = ask(office, "sinks.commit", query="q", epoch=0, parts=[], note="other")

    assert (done.events, done.note) == (1, "0/1A")
    assert (again.before, again.note) == (True, "0/1A")
    assert ask(office, "sinks.last", query="q").note == "0/1A"
    [letter] = ask(office, "dead-letters").letters
    assert (letter.gateway, letter.reason, letter.raw) == ("cdc", "panic", b"\xff")


def test_a_query_that_committed_nothing_has_no_note(office: Office) -> None:
    row = ask(office, "sinks.last", query="q")

    assert (row.epoch, row.note) == (None, "")


@pytest.mark.parametrize("note", ["x" * 65_537, "é" * 32_769])
def test_a_note_has_a_limit_in_bytes(office: Office, note: str) -> None:
    with pytest.raises((InvalidArgument, InvalidOption)):
        ask(office, "sinks.commit", query="q", epoch=0, parts=[], note=note)

    fits = "é" * 32_768
    ask(office, "sinks.commit", query="q", epoch=0, parts=[], note=fits)


@pytest.mark.parametrize(
    "gateway", ["mqtt", "MQTT", "json publisher", "line", "mqtt-2", " mqtt", "mqtt\n"]
)
def test_letters_are_not_filed_as_those_of_the_broker(
    office: Office, gateway: str
) -> None:
    given = {"letters": [["forged", b"x"]], "gateway": gateway}

    with pytest.raises((InvalidArgument, InvalidOption)):
        ask(office, "sinks.commit", query="q", epoch=0, parts=[], **given)

    assert office.broker.sinks.last("q") is None


@pytest.mark.parametrize("gateway", ["cdc", "ingest sse", "pipeline", ""])
def test_letters_of_feeds_have_their_name(office: Office, gateway: str) -> None:
    given = {"letters": [["odd", b"x"]], "gateway": gateway}
    ask(office, "sinks.commit", query="q", epoch=0, parts=[], **given)
    office.commit()

    [letter] = ask(office, "dead-letters").letters
    assert letter.gateway == (gateway or "sink")
