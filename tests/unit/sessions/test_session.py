from __future__ import annotations

from penstock.sessions.session import NOBODY, Session
from tests.unit.sessions.scene import Scene, consumer_of, share_of


def test_a_session_is_a_subscriber_that_no_other_protocol_can_be() -> None:
    session = Session(1, "ann", durable=True)

    assert session.name == "$mqtt/ann"
    assert session.producer == "mqtt/ann"


def test_packet_ids_are_noted_for_sessions_that_are_kept() -> None:
    assert Session(1, "ann", durable=True).flights.noting
    assert not Session(1, "ann", durable=False).flights.noting


def test_a_share_is_found_by_its_consumer() -> None:
    scene = Scene()
    ann, bob = scene.come("ann"), scene.come("bob")
    for one in (ann, bob):
        scene.wish(one, "t")
    scene.events("t")

    share, consumer = share_of(ann), consumer_of(ann)
    assert ann.share_of(consumer) is share
    assert bob.share_of(consumer) is None
    assert share.topic == "t"


def test_nobody_hears_of_anything() -> None:
    scene = Scene()
    session = scene.come()
    scene.wish(session, "t")
    scene.events("t")
    consumer = consumer_of(session)

    NOBODY.released(consumer, [])
    NOBODY.ended(consumer, "the topic is gone")
    NOBODY.moved(consumer)
