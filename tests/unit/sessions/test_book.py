"""All sessions of a broker, and what the journal keeps of them."""

from __future__ import annotations

import pytest

from penstock.delivery.handshake import Reply
from penstock.log import Columns, LogOptions
from penstock.sessions import TopicFilter, Will
from penstock.sessions.routes import ANSWERED
from tests.unit.delivery.scene import RESTARTS, Outlet
from tests.unit.sessions.scene import (
    Scene,
    consumer_of,
    share_of,
    subscription_of,
)

WILL = Will("gone", b"bye", 1, True, {"a": "b"}, 5.0, 60.0, 3)


@pytest.fixture
def scene() -> Scene:
    return Scene()


# Coming and going


@RESTARTS
def test_filters_are_counted_by_the_user_who_has_them(restart: str) -> None:
    scene = Scene()
    for name, user in (("ann", "anna"), ("bob", "anna"), ("eve", "")):
        session = scene.come(name)
        session.user = user
        for filter_ in ("a", "a", "b/#", "c"):
            scene.subscribe_to(session, filter_)
    scene.broker.sessions.unsubscribe(scene.session("ann"), "c")
    scene.broker.sessions.unsubscribe(scene.session("ann"), "unknown")
    scene.commit()
    assert scene.broker.sessions.filters == {"anna": 5}

    scene.restart(restart)

    assert scene.broker.sessions.filters == {"anna": 5}
    for name in ("ann", "bob", "eve"):
        scene.broker.sessions.end(scene.session(name))
    assert not scene.broker.sessions.filters


def test_a_session_is_there_when_its_client_comes_again(scene: Scene) -> None:
    sessions = scene.broker.sessions

    first, present = sessions.open("ann", clean=False, expiry_s=None)
    assert not present
    second, present = sessions.open("ann", clean=False, expiry_s=60.0)

    assert present
    assert second is first
    assert first.expiry_s == 60.0
    assert len(sessions) == 1
    assert list(sessions) == [first]


def test_a_clean_start_is_another_session(scene: Scene) -> None:
    first = scene.come()
    scene.subscribe_to(first, "t")
    scene.events("t")
    scene.go(first)

    second, present = scene.broker.sessions.open("ann", clean=True, expiry_s=None)

    assert not present
    assert second.number > first.number
    assert not second.topic_filters
    assert scene.subscriptions() == []


def test_only_sessions_with_time_are_kept(scene: Scene) -> None:
    sessions = scene.broker.sessions

    for name, expiry_s in (("ann", None), ("bob", 1.0), ("cleo", 0.0)):
        sessions.open(name, clean=False, expiry_s=expiry_s)

    assert [one.durable for one in sessions] == [True, True, False]


def test_those_who_are_away_are_known_the_first_in_front(scene: Scene) -> None:
    ann, bob = scene.come("ann"), scene.come("bob")
    ann.will = WILL
    scene.go(bob)
    scene.clock.advance(1.0)
    scene.go(ann)

    sessions = scene.broker.sessions
    assert sessions.offline == [bob, ann]
    assert (ann.gone_s, ann.will_due_s) == (1001.0, 1006.0)

    scene.come("bob")
    assert sessions.offline == [ann]
    assert bob.gone_s is None


def test_who_comes_back_in_time_has_no_will_due(scene: Scene) -> None:
    ann = scene.come()
    ann.will = WILL
    scene.go(ann)

    scene.come()

    assert ann.will_due_s is None


def test_wishes_are_known_by_their_filter(scene: Scene) -> None:
    ann, sessions = scene.come(), scene.broker.sessions

    assert not sessions.subscribe(ann, TopicFilter("t", 1))
    assert sessions.subscribe(ann, TopicFilter("t", 2))
    assert ann.topic_filters == {"t": TopicFilter("t", 2)}
    assert sessions.unsubscribe(ann, "t")
    assert not sessions.unsubscribe(ann, "t")


def test_a_session_that_ended_is_forgotten_with_what_it_was_owed(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "t")
    scene.subscribe_to(ann, "$share/g/t")
    scene.events("t")
    scene.got(ann)
    scene.go(ann)

    scene.broker.sessions.end(ann)
    scene.commit()

    assert scene.broker.sessions.get("ann") is None
    assert scene.broker.sessions.offline == []
    assert scene.subscriptions() == []
    scene.restart()
    assert scene.broker.sessions.get("ann") is None


# The journal


@RESTARTS
def test_everything_of_a_session_is_there_after_a_restart(
    scene: Scene, restart: str
) -> None:
    ann = scene.come(expiry_s=3600.0)
    ann.user, ann.will = "anna", WILL
    scene.broker.sessions.subscribe(ann, TopicFilter("t", 2, True, True, 7))
    scene.subscribe_to(ann, "$share/g/x/#")
    scene.commit()

    scene.clock.advance(10.0)
    scene.restart(restart)

    found = scene.session()
    assert (found.number, found.user, found.expiry_s) == (ann.number, "anna", 3600.0)
    assert (found.will, found.topic_filters) == (WILL, ann.topic_filters)
    assert (found.gone_s, found.will_due_s) == (1010.0, 1015.0)
    assert scene.broker.sessions.offline == [found]


@RESTARTS
def test_packet_ids_in_flight_are_there_after_a_restart(
    scene: Scene, restart: str
) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "t", qos=2)
    scene.events("t", 4)
    ids = scene.send(ann, qos=2)
    sessions = scene.broker.sessions
    sessions.note(ann, urgent=True)
    scene.commit()
    for in_flight in ann.packet_ids.answered(Reply.PUBREC, ids[:2]):
        subscription_of(ann).settle(in_flight.offset)
    sessions.received(ann, [5, 6])
    sessions.completed(ann, [5])
    scene.commit()

    scene.restart(restart)

    found = scene.session().packet_ids
    assert (list(found.out), list(found.released)) == (ids[2:], ids[:2])
    assert found.received == {6}
    back = scene.come()
    assert scene.got(back) == {}  # they are in flight with it again
    consumer = consumer_of(back)
    assert [consumer.holds(offset) for offset in range(4)] == [False, False, True, True]


def test_checkpoints_carry_sessions_on() -> None:
    scene = Scene(log=LogOptions(checkpoint_bytes=1024))
    ann = scene.come()
    scene.subscribe_to(ann, "t")
    scene.broker.sessions.received(ann, [9])
    for _ in range(50):
        scene.events("other", 20)

    scene.restart()

    assert scene.session().packet_ids.received == {9}
    assert list(scene.session().topic_filters) == ["t"]
    assert scene.come("bob").number > ann.number


def test_sessions_without_time_are_not_in_the_journal(scene: Scene) -> None:
    ann = scene.come(expiry_s=0.0)
    scene.subscribe_to(ann, "t")
    scene.commit()

    scene.restart()

    assert len(scene.broker.sessions) == 0


def test_what_somebody_waits_for_is_urgent_and_acks_are_not(scene: Scene) -> None:
    sessions = scene.broker.sessions
    ann = scene.come()
    assert sessions.urgent
    scene.commit()
    assert not sessions.dirty

    sessions.note(ann)
    assert (sessions.urgent, sessions.dirty) == (False, True)
    scene.commit()
    assert not sessions.dirty

    sessions.received(ann, [1])
    assert sessions.urgent
    scene.commit()
    assert sessions.completed(ann, [2]) == []
    assert not sessions.dirty
    assert sessions.completed(ann, [1]) == [1]
    assert sessions.urgent


def test_a_session_that_is_not_kept_has_nothing_to_write(scene: Scene) -> None:
    sessions = scene.broker.sessions
    ann = scene.come(expiry_s=0.0)
    scene.subscribe_to(ann, "t")
    sessions.received(ann, [1])
    sessions.note(ann, urgent=True)

    assert not sessions.dirty
    assert sessions.collect() == []


# Commits that fail


def test_what_was_received_in_a_failed_group_was_not(scene: Scene) -> None:
    ann, sessions = scene.come(), scene.broker.sessions
    scene.commit()
    sessions.received(ann, [1])
    scene.fail_commit()
    assert ann.packet_ids.received == set()

    sessions.received(ann, [2])
    scene.commit()
    scene.restart()

    assert scene.session().packet_ids.received == {2}


def test_what_was_completed_in_a_failed_group_was_not(scene: Scene) -> None:
    ann, sessions = scene.come(), scene.broker.sessions
    sessions.received(ann, [1, 2])
    scene.commit()
    sessions.completed(ann, [1])
    scene.fail_commit()

    assert ann.packet_ids.received == {1, 2}
    assert sessions.completed(ann, [1]) == [1]


def test_a_failed_group_is_said_again_by_the_next(scene: Scene) -> None:
    ann = scene.come("ann")
    scene.subscribe_to(ann, "t", qos=2)
    bob = scene.come("bob")
    scene.events("t")
    scene.send(ann, qos=2)
    scene.broker.sessions.end(bob)
    scene.broker.sessions.note(ann, urgent=True)
    scene.fail_commit()
    assert scene.broker.sessions.urgent

    scene.commit()
    scene.restart()

    assert [one.client for one in scene.broker.sessions] == ["ann"]
    assert list(scene.session().packet_ids.out) == [1]
    assert list(scene.session().topic_filters) == ["t"]


def test_a_publish_and_its_id_fail_together(scene: Scene) -> None:
    ann = scene.come()
    scene.commit()
    scene.broker.publish("t", Columns([b"x"]))
    scene.broker.sessions.received(ann, [1])
    scene.fail_commit()
    scene.commit()
    scene.restart()

    assert scene.log.topic("t").next_offset == 0
    assert scene.session().packet_ids.received == set()


# What the journal has and nobody else


def test_subscriptions_whose_session_is_gone_are_removed(scene: Scene) -> None:
    scene.broker.subscriptions.add("$mqtt/nobody", "t", ANSWERED, 0, temporary=False)
    scene.broker.subscriptions.add("$share/g/t", "t", ANSWERED, 0, temporary=False)
    scene.subscribe(name="ann")
    scene.commit()

    scene.restart()

    assert scene.subscriptions() == [("ann", "t")]


def test_ids_of_a_topic_that_is_gone_are_released(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "t", qos=2)
    scene.events("t")
    scene.send(ann, qos=2)
    scene.go(ann)
    scene.broker.sessions.note(ann, urgent=True)
    scene.commit()
    scene.broker.delete_topic("t")
    scene.commit()
    scene.commit()

    scene.restart()

    assert list(scene.session().packet_ids.released) == [1]
    assert not scene.session().packet_ids.out


def test_a_client_that_comes_back_takes_what_it_had(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "t")
    scene.events("t", 2)
    assert scene.got(ann) == {"t": [0, 1]}
    scene.go(ann)
    assert share_of(ann).consumer is None
    assert not ann.ready

    outlet = Outlet()
    scene.broker.sessions.attach(ann, outlet)

    assert consumer_of(ann) in ann.ready
    assert outlet in scene.broker.awake
    assert scene.got(ann) == {"t": [0, 1]}
