from __future__ import annotations

from pathlib import Path

import pytest

from penstock.access.grants import ADMINISTRATOR, OPEN, Grants, Rule
from penstock.broker import epochs
from penstock.broker.broker import Broker
from penstock.desk.access import (
    ABOUT_A_QUERY,
    ABOUT_A_TOPIC,
    BEGINNING,
    CHANGES,
    CREATE,
    OPEN_TO_ALL,
    PROGRESS,
    READING,
    check_verb,
)
from penstock.desk.desk import Desk
from penstock.errors import NotAllowed
from penstock.http.access import Access
from penstock.http.routes import ROUTES
from penstock.log import Columns
from penstock.schema import ORDINARY_WEIGHT
from tests.unit.gateway.scene import Scene

WRITER = Grants(user="anna", rules=(Rule("publish", "in/#"),))
READER = Grants(user="anna", rules=(Rule("read", "in/#"),))
SUBSCRIBER = Grants(user="anna", rules=(Rule("subscribe", "in/#"),))
EVERYBODY = (WRITER, READER, SUBSCRIBER)


@pytest.fixture
def broker(tmp_path: Path) -> Broker:
    return Scene(tmp_path).broker


def allowed(broker: Broker, grants: Grants, verb: str, **said: object) -> bool:
    try:
        check_verb(grants, broker, verb, said)
    except NotAllowed:
        return False
    return True


@pytest.mark.parametrize(
    ("verb", "said", "who"),
    [
        ("topics.show", {"name": "in/a"}, EVERYBODY),
        ("topics.show", {"name": "out"}, ()),
        ("topics.show", {"name": "$errors"}, ()),
        ("topics.show", {"name": ["in/a"]}, ()),
        ("topics.show", {}, ()),
        ("topics.describe", {"name": "in/a"}, EVERYBODY),
        ("topics.describe", {"name": "in/a", "text": None}, EVERYBODY),
        ("topics.describe", {"name": "in/a", "text": "x"}, ()),
        ("topics.create", {"name": "in/a"}, (WRITER, SUBSCRIBER)),
        ("topics.create", {"name": "in/a", "compact": None}, (WRITER, SUBSCRIBER)),
        ("topics.create", {"name": "in/a", "compact": True}, ()),
        ("topics.create", {"name": "out"}, ()),
        ("topics.create", {"name": 1}, ()),
        ("topics", {}, ()),
        ("topics.delete", {"name": "in/a"}, ()),
        ("schemas.check", {"topic": "in/a"}, (WRITER,)),
        ("schemas.check", {"topic": "in/a", "schema": None}, (WRITER,)),
        ("schemas.check", {"topic": "in/a", "schema": {}}, ()),
        ("schemas.register", {"topic": "in/a", "schema": "{}"}, ()),
        ("logs", {"topic": "in/a"}, (READER, SUBSCRIBER)),
        ("events.show", {"topic": "in/a", "offset": 0}, (READER, SUBSCRIBER)),
        ("events.find", {"id": "x"}, ()),
        ("chains.show", {"topic": "in/a", "offset": 0}, ()),
        ("subscriptions", {"topic": "in/a"}, EVERYBODY),
        ("subscriptions", {}, ()),
        ("subscriptions.progress", {"topic": "in/a"}, ()),
        (
            "subscriptions.progress",
            {"topic": "in/a", "subscriber": "job"},
            (SUBSCRIBER,),
        ),
        ("subscriptions.seek", {"topic": "in/a", "start": 0}, ()),
        ("subscriptions.forget", {"topic": "in/a"}, ()),
        ("mqtt.sessions", {}, ()),
        ("mqtt.sessions.end", {"client": "in/a"}, ()),
        ("mqtt.retained", {}, ()),
        ("mqtt.retained.forget", {"topic": "in/a"}, ()),
        ("dead-letters", {}, ()),
        ("dead-letters.republish", {"numbers": [0]}, ()),
        ("sinks", {}, ()),
        ("sinks.last", {"query": "q"}, (WRITER,)),
        ("sinks.commit", {"query": []}, ()),
    ],
)
def test_a_verb_needs_a_rule_for_its_topic_or_is_for_others(
    broker: Broker, verb: str, said: dict[str, object], who: tuple[Grants, ...]
) -> None:
    found = tuple(one for one in EVERYBODY if allowed(broker, one, verb, **said))

    assert found == who
    assert allowed(broker, ADMINISTRATOR, verb, **said)


def test_what_others_have_staged_is_neither_committed_nor_dropped(
    broker: Broker,
) -> None:
    assert allowed(broker, WRITER, "sinks.commit", query="q", epoch=0)
    epochs.stage(broker, "q", 0, (0, 0), 0, "in/a", Columns([b"x"], 0), 0.0)
    epochs.stage(broker, "q", 0, (1, 0), 0, "", Columns([], 0), 0.0)
    assert allowed(broker, WRITER, "sinks.commit", query="q", epoch=0)
    epochs.stage(broker, "q", 0, (2, 0), 0, "out", Columns([b"x"], 0), 0.0)

    for verb in ABOUT_A_QUERY:
        with pytest.raises(NotAllowed, match="anna may not publish to out"):
            check_verb(WRITER, broker, verb, {"query": "q", "epoch": 0})


@pytest.mark.parametrize(
    ("verb", "arguments", "said"),
    [
        (
            "topics.delete",
            {"name": "in/a"},
            "ask for topics.delete of in/a: it needs an administrator",
        ),
        ("logs", {"topic": 1}, "ask for logs"),
        (
            "dead-letters.drop",
            {"numbers": [1]},
            "ask for dead-letters.drop: it needs an administrator",
        ),
    ],
)
def test_a_refusal_names_the_verb_and_its_topic(
    broker: Broker, verb: str, arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(NotAllowed) as caught:
        check_verb(WRITER, broker, verb, arguments)

    assert str(caught.value) == f"user anna may not {said}"


CHANGING: dict[str, dict[str, object]] = {
    "topics.delete": {"name": "t"},
    "topics.describe": {"name": "t", "text": "x"},
    "topics.comment": {"name": "t", "text": "x"},
    "topics.uncomment": {"name": "t", "number": 1},
    "schemas.register": {"topic": "t", "schema": {}},
    "schemas.mode": {"topic": "t", "mode": "none"},
    "schemas.check": {"topic": "t", "schema": {}},
    "subscriptions.forget": {"subscriber": "s", "topic": "t"},
    "subscriptions.seek": {"subscriber": "s", "topic": "t", "start": 0},
    "subscriptions.resume": {"subscriber": "s", "topic": "t"},
    "dead-letters.republish": {"numbers": [0]},
    "dead-letters.edit": {"number": 0, "payload": b""},
    "dead-letters.drop": {"numbers": [0]},
    "mqtt.sessions.end": {"client": "c"},
    "mqtt.retained.forget": {"topic": "t"},
    # These change nothing, and tell of others, or of files of the server.
    "users.usage": {},
    "config": {},
}


@pytest.mark.parametrize("grants", [OPEN, Grants(user="anna")])
@pytest.mark.parametrize(("verb", "said"), CHANGING.items())
def test_what_changes_needs_an_administrator(
    broker: Broker, verb: str, said: dict[str, object], grants: Grants
) -> None:
    broker.publish("t", Columns([b"x"], 0))

    with pytest.raises(NotAllowed) as caught:
        check_verb(grants, broker, verb, said)

    who = "user anna" if grants.user else "who does not log in"
    assert str(caught.value).startswith(f"{who} may not ask for {verb}")
    assert str(caught.value).endswith(": it needs an administrator")
    assert "--token-file" in caught.value.hint
    check_verb(ADMINISTRATOR, broker, verb, said)
    check_verb(Grants(user="anna", rules=(), admin=True), broker, verb, said)


def test_every_verb_is_open_to_all_or_for_administrators(broker: Broker) -> None:
    verbs = Desk(broker).verbs

    closed = CHANGING.keys() - CHANGES.keys()
    assert verbs.keys() == OPEN_TO_ALL | closed, "sort it into a table, or here"
    assert not OPEN_TO_ALL & closed
    for name, argument in CHANGES.items():
        assert argument in verbs[name].arguments.__struct_fields__


@pytest.mark.parametrize("verb", sorted(OPEN_TO_ALL))
def test_all_others_are_open_to_whoever_has_no_rules(broker: Broker, verb: str) -> None:
    check_verb(OPEN, broker, verb, {"name": "t", "topic": "t", "query": "q"})


def test_a_verb_that_nobody_has_sorted_is_for_administrators(broker: Broker) -> None:
    assert not allowed(broker, OPEN, "topics.truncate", name="t")


def test_whoever_makes_a_topic_says_what_it_is_like(broker: Broker) -> None:
    desk = Desk(broker)
    described = {"name": "t", "text": "Orders."}
    schema = {"topic": "t", "schema": {"type": "object"}}

    assert allowed(broker, OPEN, "schemas.register", **schema)
    assert not allowed(broker, WRITER, "schemas.register", **schema)
    desk.ask("schemas.register", schema)
    assert allowed(broker, OPEN, "topics.describe", **described)
    desk.ask("topics.describe", described)

    assert not allowed(broker, OPEN, "topics.describe", name="t", text="Others.")
    assert not allowed(broker, OPEN, "topics.describe", name="t", text="")
    # Programs do so whenever they start.
    assert allowed(broker, OPEN, "schemas.register", **schema)
    broker.publish("t", Columns([b"{}"], 0))
    assert allowed(broker, OPEN, "schemas.register", **schema, mode=None)
    for other in (
        {"topic": "t", "schema": {"type": "array"}},
        {"topic": "t", "schema": 1},
        {"topic": "t"},
        {"topic": ["t"], "schema": {}},
        {**schema, "mode": "none"},
    ):
        assert not allowed(broker, OPEN, "schemas.register", **other)


@pytest.mark.parametrize("grants", [OPEN, Grants(user="anna")])
def test_a_heavy_schema_needs_an_administrator(broker: Broker, grants: Grants) -> None:
    enough = {"topic": "t", "schema": {"anyOf": [{}] * (ORDINARY_WEIGHT - 1)}}
    heavy = {"topic": "t", "schema": {"anyOf": [{}] * ORDINARY_WEIGHT}}

    assert allowed(broker, grants, "schemas.register", **enough)
    with pytest.raises(
        NotAllowed, match=r"weighs 201 \(limit 200\) for t: it needs an"
    ):
        check_verb(grants, broker, "schemas.register", heavy)
    assert allowed(broker, ADMINISTRATOR, "schemas.register", **heavy)
    # Programs say so whenever they start.
    Desk(broker).ask("schemas.register", heavy)
    assert allowed(broker, grants, "schemas.register", **heavy)


def test_what_is_no_schema_is_told_by_the_verb(broker: Broker) -> None:
    for schema in (1, "{", "x" * 1_000_000):
        assert allowed(broker, OPEN, "schemas.register", topic="t", schema=schema)


def test_the_tables_are_about_verbs_that_there_are(broker: Broker) -> None:
    verbs = Desk(broker).verbs

    for name in (*READING, *ABOUT_A_QUERY, CREATE, PROGRESS, *BEGINNING):
        assert name in verbs
    for name, (argument, _) in ABOUT_A_TOPIC.items():
        assert argument in verbs[name].arguments.__struct_fields__


def test_what_may_be_asked_is_the_same_over_http() -> None:
    needs = {
        Access.SEE: Grants.check_see,
        Access.FOLLOW: Grants.check_read,
        Access.PUBLISH: Grants.check_publish,
        Access.CONSUME: Grants.check_subscribe,
    }

    for route in ROUTES:
        if route.access in needs:
            _, check = ABOUT_A_TOPIC[route.verb]
            assert check is needs[route.access], route.verb
