from __future__ import annotations

import pytest

from penstock.delivery.handshake import Answer
from tests.unit.delivery.scene import RESTARTS
from tests.unit.sessions.scene import (
    Scene,
    consumer_of,
    share_of,
    subscription_of,
)

GROUP = "$share/g/t"


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_what_was_sent_is_in_flight_again_with_who_comes_back(scene: Scene) -> None:
    ann = scene.come()
    scene.wish(ann, "t")
    scene.events("t", 2)
    scene.send(ann)
    scene.events("t", 1)

    scene.go(ann)
    scene.come()

    assert [consumer_of(ann).holds(offset) for offset in (0, 1)] == [True, True]
    assert scene.got(ann) == {"t": [2]}


def test_an_answer_settles_what_was_not_sent_again_yet(scene: Scene) -> None:
    ann = scene.come()
    scene.wish(ann, "t")
    scene.events("t", 1)
    ids = scene.send(ann)
    scene.go(ann)
    scene.come()

    (flight,) = ann.flights.answered(Answer.ACK, ids)
    settled = subscription_of(ann).settle_all([flight.offset], consumer_of(ann))

    assert settled == 1
    assert subscription_of(ann).drained


@RESTARTS
def test_what_a_group_began_with_qos_2_is_for_the_same_client_after_a_restart(
    scene: Scene, restart: str
) -> None:
    ann, bob = scene.come("ann"), scene.come("bob")
    for one in (ann, bob):
        scene.wish(one, GROUP, qos=2)
    scene.events("t", 1)
    ids = scene.send(ann, qos=2)
    scene.broker.sessions.note(ann, urgent=True)
    scene.commit()

    scene.restart(restart)

    assert scene.got(scene.come("bob")) == {}
    ann = scene.come("ann")
    assert consumer_of(ann).holds(0)
    assert list(ann.flights.out) == ids


@RESTARTS
def test_what_a_group_sent_with_qos_1_is_for_anybody_after_a_restart(
    scene: Scene, restart: str
) -> None:
    ann, bob = scene.come("ann"), scene.come("bob")
    for one in (ann, bob):
        scene.wish(one, GROUP)
    scene.events("t", 1)
    scene.send(ann)
    scene.broker.sessions.note(ann, urgent=True)
    scene.commit()

    scene.restart(restart)

    assert scene.got(scene.come("bob")) == {"t": [0]}
    assert len(scene.session("ann").flights) == 0


def test_a_member_that_leaves_and_joins_again_completes_what_it_has(
    scene: Scene,
) -> None:
    ann = scene.come()
    scene.wish(ann, GROUP, qos=2)
    scene.wish(scene.come("bob"), GROUP, qos=2)
    scene.events("t", 1)
    scene.send(ann, qos=2)
    before = share_of(ann)

    scene.broker.sessions.unwish(ann, GROUP)
    scene.wish(ann, GROUP, qos=2)

    assert share_of(ann) is before
    assert not before.ending
    assert len(before.subscription.consumers) == 2


def test_a_share_whose_topic_has_events_on_their_way_is_not_swept(
    scene: Scene,
) -> None:
    ann = scene.come()
    scene.wish(ann, "t")
    scene.events("t", 1)
    scene.send(ann)
    subscription_of(ann).settle_all([0], consumer_of(ann))
    scene.events("t", 1, commit=False)

    assert scene.broker.sessions.routes.sweep(ann) == 0

    scene.commit()
    assert scene.got(ann) == {"t": [1]}
