from __future__ import annotations

from typing import Any

import pytest

from penstock.desk import schemas as desk_schemas
from penstock.desk.schemas import MAX_MISFITS
from penstock.desk.verbs import Promise
from penstock.errors import (
    IncompatibleSchema,
    InvalidArgument,
    InvalidPayload,
    InvalidSchema,
    ReservedName,
    UnknownSchema,
    UnknownTopic,
    UnsupportedSchema,
)
from penstock.log import Columns
from tests.unit.desk.office import Office

INTEGER = b'{"type":"integer"}'
NUMBER = b'{"type":"number"}'


def ask(office: Office, verb: str, **arguments: Any) -> Any:
    return office.desk.ask(verb, arguments)


def register(office: Office, topic: str = "t", schema: object = INTEGER) -> Any:
    arguments = {"topic": topic, "schema": schema, "type": "T", "by": "ann"}
    return ask(office, "schemas.register", **arguments)


def test_registering_makes_the_topic_and_the_first_version(office: Office) -> None:
    done = register(office)
    again = register(office)
    office.commit()

    assert (done.version, done.fresh, done.mode) == (1, True, "backward")
    assert (again.version, again.fresh) == (1, False)
    assert office.broker.log.topics() == ["t"]
    office.restart()
    shown = ask(office, "schemas.show", topic="t")
    assert (shown.schema, shown.type, shown.by) == (INTEGER.decode(), "T", "ann")


def test_a_schema_that_is_refused_makes_no_topic(office: Office) -> None:
    with pytest.raises(InvalidSchema):
        register(office, schema=b'{"type":"text"}')
    with pytest.raises(ReservedName):
        register(office, topic="$errors")

    assert office.broker.log.topics() == []


def test_versions_are_listed_and_shown(office: Office) -> None:
    register(office)
    register(office, schema={"type": "number"})
    register(office, "a")

    page = ask(office, "schemas", limit=1)
    rest = ask(office, "schemas", after="a")

    assert [(row.topic, row.version) for row in page.schemas] == [("a", 1)]
    assert page.more
    assert [(row.topic, row.version) for row in rest.schemas] == [("t", 2)]
    old = ask(office, "schemas.show", topic="t", version=1)
    assert (old.version, [one.version for one in old.versions]) == (1, [1, 2])
    with pytest.raises(UnknownSchema):
        ask(office, "schemas.show", topic="t", version=3)
    with pytest.raises(UnknownSchema):
        ask(office, "schemas.show", topic="nothing")


def test_a_mode_is_set_alone_or_with_a_version(office: Office) -> None:
    with pytest.raises(UnknownTopic):
        ask(office, "schemas.mode", topic="t", mode="none")
    register(office, schema=NUMBER)
    with pytest.raises(IncompatibleSchema):
        register(office, schema=INTEGER)

    done = ask(office, "schemas.register", topic="t", schema=INTEGER, mode="forward")

    assert (done.version, done.mode) == (2, "forward")
    assert ask(office, "schemas.mode", topic="t").mode == "forward"
    assert ask(office, "schemas.mode", topic="t", mode="full").mode == "full"
    with pytest.raises(InvalidArgument):
        ask(office, "schemas.mode", topic="t", mode="sideways")


def test_a_candidate_is_checked_and_nothing_changed(office: Office) -> None:
    register(office, schema=NUMBER)

    found = ask(office, "schemas.check", topic="t", schema=INTEGER)
    forward = ask(office, "schemas.check", topic="t", schema=INTEGER, mode="forward")
    first = ask(office, "schemas.check", topic="new", schema=INTEGER)

    assert [row.path for row in found.problems] == ["$"]
    assert (found.version, forward.problems) == (1, [])
    assert (first.version, first.problems) == (None, [])
    assert ask(office, "schemas.show", topic="t").version == 1


def test_payloads_are_checked(office: Office) -> None:
    register(office)

    known = ask(office, "schemas.check", topic="t", payloads=[b"1", b'"x"'])
    other = ask(
        office, "schemas.check", topic="t", schema=b"true", payloads=[b"1", b"x"]
    )
    many = ask(office, "schemas.check", topic="t", payloads=[b"x"] * 200)

    assert [(row.index, row.path) for row in known.misfits] == [(1, "$")]
    assert [row.index for row in other.misfits] == [1]
    assert len(many.misfits) == MAX_MISFITS
    with pytest.raises(InvalidArgument):
        ask(office, "schemas.check", topic="t")


def test_data_is_made_up(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_schemas, "MAX_MOCK_BYTES", 10_000)
    register(office)
    register(office, "odd", {"type": "object", "patternProperties": {}})

    one = ask(office, "schemas.mock", topic="t", count=3, seed=7)

    assert one == ask(office, "schemas.mock", topic="t", count=3, seed=7)
    assert all(int(document) >= 0 for document in one.documents)
    with pytest.raises(UnsupportedSchema):
        ask(office, "schemas.mock", topic="odd")
    large = {"type": "string", "minLength": 1000, "maxLength": 1000}
    register(office, "large", {"type": "array", "minItems": 6, "items": large})
    cut = ask(office, "schemas.mock", topic="large", count=50)
    assert len(cut.documents) == 2


def test_publishing_is_checked_from_then_on(office: Office) -> None:
    office.publish("t", b"before")
    register(office)

    with pytest.raises(InvalidPayload) as caught:
        office.broker.publish("t", Columns([b"1", b'{"a":2}']))

    assert caught.value.index == 1
    assert office.broker.log.topic("t").next_offset == 1
    office.publish("t", b"2")
    office.publish("other", b"anything")


def test_of_events_published_once_the_index_is_that_of_the_caller(
    office: Office,
) -> None:
    register(office)
    broker = office.broker
    broker.publish_once("t", Columns([b"1"]), ["a"], 0.0)

    with pytest.raises(InvalidPayload) as caught:
        broker.publish_once("t", Columns([b"1", b"2", b"x"]), ["a", "b", "c"], 0.0)

    assert caught.value.index == 2
    assert broker.publish_once("t", Columns([b"1", b"2"]), ["a", "b"], 0.0) == [0, 1]


def test_a_topic_shows_its_schema(office: Office) -> None:
    office.publish("bare", b"1")
    register(office)

    topic = office.desk.topic(name="t")
    bare = office.desk.topic(name="bare")

    assert (topic.schema_version, topic.schema_type) == (1, "T")
    assert (bare.schema_version, bare.documented, bare.comments) == (None, False, 0)


@pytest.mark.parametrize("name", ["schemas.register", "schemas.mode"])
def test_what_changes_something_is_answered_when_it_is_stored(
    office: Office, name: str
) -> None:
    assert office.desk.find(name).promise is Promise.STORED
