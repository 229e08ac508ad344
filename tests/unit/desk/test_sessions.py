"""The desk's sessions: rows that say how things stand, and an end that is kept."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.desk import sessions as desk_sessions
from penstock.desk.desk import Desk
from penstock.desk.views.sessions import (
    FilterRow,
    MqttSessionRow,
    OwedTopicRow,
    WillRow,
)
from penstock.errors import InvalidArgument, InvalidName, UnknownSession
from penstock.sessions import TopicFilter, Will
from tests.unit.delivery.scene import Outlet
from tests.unit.sessions.scene import Scene


class Line(Outlet):
    """A connection that can be told that its session ends."""

    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__()
        self.sent_away_at: list[float] = []
        self._scene, self._name = scene, name

    def sent_away(self, now_s: float) -> None:
        self.sent_away_at.append(now_s)
        session = self._scene.session(self._name)
        assert session.expiry_s == 0, "its gateway ends it with the connection"
        self._scene.broker.sessions.detach(session, now_s)
        self._scene.broker.sessions.end(session)


@pytest.fixture
def scene() -> Scene:
    return Scene()


def ask(scene: Scene, verb: str, **arguments: Any) -> Any:
    return Desk(scene.broker).ask(verb, arguments)


def clients(scene: Scene, **arguments: Any) -> list[str]:
    return [one.client for one in ask(scene, "mqtt.sessions", **arguments).sessions]


def test_a_row_says_how_things_stand(scene: Scene) -> None:
    ann = scene.come("ann", 60)
    ann.user = "anna"
    scene.subscribe_to(ann, "t", 2)
    scene.subscribe_to(ann, "a/#", 1)
    scene.events("t", 3)
    scene.events("a/b", 2)
    first, *_ = scene.send(ann, "t", qos=2)
    scene.broker.sessions.received(ann, [7, 9])

    (row,) = ask(scene, "mqtt.sessions").sessions

    assert row == MqttSessionRow(
        client="ann",
        user="anna",
        state="connected",
        since_ms=1_000_000,
        expiry_s=60,
        expires_in_s=None,
        durable=True,
        filters=[topic_filter("t", 2), topic_filter("a/#", 1)],
        filters_count=2,
        in_flight_out=3,
        in_flight_in=2,
        owed_topics=2,
        lag=5,
    )
    assert first == 1


def topic_filter(filter_: str, qos: int) -> FilterRow:
    return FilterRow(
        filter=filter_, qos=qos, no_local=False, retain_as_published=False, identifier=0
    )


def test_a_client_that_is_away_has_time_left(scene: Scene) -> None:
    for name, expiry_s in (("ann", 60.0), ("bob", None)):
        session = scene.come(name, expiry_s)
        scene.clock.advance(5)
        scene.go(session)
    scene.clock.advance(20)

    ann, bob = ask(scene, "mqtt.sessions").sessions

    assert (ann.state, ann.since_ms, ann.expires_in_s) == ("away", 1_005_000, 35)
    assert (bob.state, bob.since_ms, bob.expires_in_s) == ("away", 1_010_000, None)


def test_no_time_is_left_where_it_is_over(scene: Scene) -> None:
    scene.go(scene.come("ann", 60))
    scene.clock.advance(61)

    assert ask(scene, "mqtt.sessions").sessions[0].expires_in_s == 0


def test_a_session_from_the_journal_is_away(scene: Scene) -> None:
    scene.come("ann", 60)
    scene.commit()
    scene.clock.advance(7)

    scene.restart()

    (row,) = ask(scene, "mqtt.sessions").sessions
    assert (row.state, row.since_ms) == ("away", 1_007_000)
    assert row.expires_in_s == 60


def test_a_session_that_ends_with_its_connection_is_not_durable(scene: Scene) -> None:
    scene.come("ann", 0)

    (row,) = ask(scene, "mqtt.sessions").sessions

    assert (row.durable, row.expiry_s, row.expires_in_s) == (False, 0, None)


def test_sessions_come_by_name_in_pages(scene: Scene) -> None:
    for name in ("cy", "ann", "bob"):
        scene.come(name)

    first = ask(scene, "mqtt.sessions", limit=2)
    rest = ask(scene, "mqtt.sessions", limit=2, after="bob")

    assert ([one.client for one in first.sessions], first.more) == (
        ["ann", "bob"],
        True,
    )
    assert ([one.client for one in rest.sessions], rest.more) == (["cy"], False)


def test_a_page_adds_up_so_many_topics(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ann", "bob"):
        scene.subscribe_to(scene.come(name), "#")
    for topic in ("a", "b"):
        scene.events(topic)
    monkeypatch.setattr(desk_sessions, "MAX_TOPICS", 3)

    page = ask(scene, "mqtt.sessions")

    assert ([one.client for one in page.sessions], page.more) == (["ann"], True)
    monkeypatch.setattr(desk_sessions, "MAX_TOPICS", 1)
    assert clients(scene, after="ann") == ["bob"], "one at least"


def test_sessions_are_found_by_state_and_by_filter(scene: Scene) -> None:
    for name, filter_ in (("ann", "a/#"), ("bob", "$share/g/a/b"), ("cy", "c")):
        scene.subscribe_to(scene.come(name), filter_)
    scene.go(scene.session("bob"))

    assert clients(scene, state="away") == ["bob"]
    assert clients(scene, state="connected") == ["ann", "cy"]
    assert clients(scene, matching="a/+") == ["ann", "bob"]
    assert clients(scene, matching="c") == ["cy"]
    assert clients(scene, matching="+/b", state="connected") == ["ann"]
    with pytest.raises(InvalidName, match="topic filter"):
        ask(scene, "mqtt.sessions", matching="a#")
    with pytest.raises(InvalidArgument):
        ask(scene, "mqtt.sessions", state="asleep")


def test_a_list_shows_some_filters_and_a_session_all(scene: Scene) -> None:
    ann = scene.come()
    for number in range(12):
        scene.subscribe_to(ann, f"f/{number}")

    (row,) = ask(scene, "mqtt.sessions").sessions
    view = ask(scene, "mqtt.sessions.show", client="ann")

    assert (len(row.filters), row.filters_count) == (10, 12)
    assert [one.filter for one in view.filters] == [f"f/{n}" for n in range(12)]


def test_one_session_shows_what_it_is_owed(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "+")
    scene.subscribe_to(ann, "$share/g/t", 2)
    scene.events("t", 2)
    scene.events("u", 3)
    scene.send(ann, "u")
    scene.events("u", 1)
    scene.events("done", 1)
    for offset in scene.got(ann)["done"]:
        consumer = ann.topics["done"].consumer
        assert consumer is not None
        ann.topics["done"].subscription.settle_all([offset], consumer)

    view = ask(scene, "mqtt.sessions.show", client="ann", limit=2)

    assert view.topics == [
        OwedTopicRow(topic="u", group=None, in_flight=3, lag=4),
        OwedTopicRow(topic="t", group=None, in_flight=0, lag=2),
    ]
    assert view.more_topics
    assert (view.owed_topics, view.lag) == (2, 6), "what is shared is left out"
    (shared,) = [
        one
        for one in ask(scene, "mqtt.sessions.show", client="ann").topics
        if one.group is not None
    ]
    assert (shared.topic, shared.group, shared.lag) == ("t", "g", 2)


def test_a_topic_that_is_gone_owes_nothing(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "u")
    scene.events("u", 2)
    scene.go(ann)
    scene.commit()

    scene.broker.delete_topic("u")

    scene.commit()

    view = ask(scene, "mqtt.sessions.show", client="ann")
    assert (view.lag, view.topics) == (0, [])


def test_one_session_shows_its_will(scene: Scene) -> None:
    ann = scene.come()
    ann.will = Will("bye", b"ann", 1, True, {}, delay_s=30)
    assert ask(scene, "mqtt.sessions.show", client="ann").will == WillRow(
        topic="bye", bytes=3, qos=1, retain=True, delay_s=30, due_ms=None
    )

    scene.go(ann)

    will = ask(scene, "mqtt.sessions.show", client="ann").will
    assert will.due_ms == 1_030_000


def test_options_of_a_filter_are_told(scene: Scene) -> None:
    ann = scene.come()
    scene.broker.sessions.subscribe(ann, TopicFilter("t", 1, True, True, 7))

    (row,) = ask(scene, "mqtt.sessions.show", client="ann").filters

    assert (row.no_local, row.retain_as_published, row.identifier) == (True, True, 7)


@pytest.mark.parametrize("verb", ["mqtt.sessions.show", "mqtt.sessions.end"])
def test_a_client_without_a_session_is_not_known(scene: Scene, verb: str) -> None:
    with pytest.raises(UnknownSession, match="ann"):
        ask(scene, verb, client="ann")


def test_a_session_ends_with_what_is_owed_to_it(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "t")
    scene.events("t", 2)
    scene.go(ann)

    row = ask(scene, "mqtt.sessions.end", client="ann")
    scene.commit()

    assert (row.client, row.lag, row.expiry_s) == ("ann", 2, None)
    assert clients(scene) == []
    assert scene.subscriptions() == []
    scene.restart("kill")
    assert clients(scene) == []


def test_the_end_is_written_again_if_the_write_fails(scene: Scene) -> None:
    scene.go(scene.come())
    scene.commit()

    ask(scene, "mqtt.sessions.end", client="ann")
    scene.fail_commit()
    scene.commit()
    scene.restart("kill")

    assert clients(scene) == []


def test_whoever_is_connected_is_sent_away(scene: Scene) -> None:
    ann = scene.come()
    line = Line(scene, "ann")
    scene.broker.sessions.attach(ann, line)

    ask(scene, "mqtt.sessions.end", client="ann")

    assert line.sent_away_at == [scene.now_s]
    assert clients(scene) == []


def test_a_will_is_left_to_the_server(scene: Scene) -> None:
    """Only the gateway knows how to publish it: the session has no time left."""
    ann = scene.come()
    ann.will = Will("bye", b"ann", 1, False, {}, delay_s=30)
    scene.go(ann)

    row = ask(scene, "mqtt.sessions.end", client="ann")
    scene.commit()
    scene.restart("kill")

    assert row.expiry_s is None
    (left,) = ask(scene, "mqtt.sessions").sessions
    assert (left.expiry_s, left.expires_in_s) == (0, 0)
    assert scene.session().will == ann.will
