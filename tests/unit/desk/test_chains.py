from __future__ import annotations

from typing import Any

import pytest

from penstock.chains import chains as chains_module
from penstock.desk.chains import MAX_DEPTH, MAX_EVENTS, PREVIEW_BYTES
from penstock.desk.views.chains import ChainEvent, ChainPage
from penstock.errors import InvalidArgument, UnknownEvent, UnknownTopic
from penstock.log import Columns
from tests.unit.desk.office import Office


@pytest.fixture
def chained(office: Office) -> Office:
    """x -> y, in two topics."""
    large = b"p" * (PREVIEW_BYTES + 1)
    columns = Columns([large], 5, ids=["x"], keys=[b"k"], producer="shop")
    office.broker.publish("t", columns)
    office.broker.publish("u", Columns([b"small"], 7, ids=["y"], parents=["x"]))
    office.commit()
    return office


def ask(office: Office, **arguments: Any) -> ChainPage:
    page = office.desk.ask("chains.show", arguments)
    assert isinstance(page, ChainPage)
    return page


def test_an_event_is_told_with_what_it_has(chained: Office) -> None:
    page = ask(chained, id="x")

    assert (page.cut, page.behind, page.next) == (None, 0, None)
    assert page.events == [
        ChainEvent(
            topic="t",
            offset=0,
            id="x",
            timestamp=5,
            parent=None,
            producer="shop",
            key=b"k",
            payload=b"p" * PREVIEW_BYTES,
            payload_bytes=PREVIEW_BYTES + 1,
            level=0,
            asked=True,
        ),
        ChainEvent(
            topic="u",
            offset=0,
            id="y",
            timestamp=7,
            parent="x",
            producer=None,
            key=None,
            payload=b"small",
            payload_bytes=5,
            level=1,
            asked=False,
        ),
    ]


def test_a_place_is_as_good_as_an_id(chained: Office) -> None:
    assert ask(chained, topic="u", offset=0) == ask(chained, id="y")


def test_ways_and_limits_are_passed_on(chained: Office) -> None:
    assert len(ask(chained, id="x", direction="up").events) == 1
    assert ask(chained, id="x", limit=1).cut == "limit"
    assert ask(chained, id="x", depth=0).cut == "depth"
    assert [one.level for one in ask(chained, id="y", whole=True).events] == [0, -1]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"id": "x", "topic": "t", "offset": 0},
        {"id": "x", "offset": 0},
        {"topic": "t"},
        {"offset": 0},
        {"topic": "t", "offset": -1},
        {"id": "x", "limit": 0},
        {"id": "x", "limit": MAX_EVENTS + 1},
        {"id": "x", "depth": -1},
        {"id": "x", "depth": MAX_DEPTH + 1},
        {"id": "x", "direction": "sideways"},
        {"next": 99},
    ],
)
def test_questions_that_make_no_sense_are_refused(
    chained: Office, arguments: dict[str, object]
) -> None:
    with pytest.raises(InvalidArgument):
        ask(chained, **arguments)


def test_what_is_not_there_is_an_error(chained: Office) -> None:
    with pytest.raises(UnknownEvent):
        ask(chained, id="none")
    with pytest.raises(UnknownTopic):
        ask(chained, topic="none", offset=0)


def test_an_answer_comes_in_parts(
    chained: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains_module, "STEP_EFFORT", 1)
    page = ask(chained, id="x")
    first = page.next
    events = list(page.events)
    while page.next is not None:
        assert page.next == first
        page = ask(chained, next=page.next)
        events += page.events

    assert [one.id for one in events] == ["x", "y"]


def test_the_index_is_closed_with_the_broker(chained: Office) -> None:
    ask(chained, id="x")

    with chained.broker:
        pass

    chained.restart()
    assert len(ask(chained, id="x").events) == 2
