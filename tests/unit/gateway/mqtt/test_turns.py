"""Packets that take a while are carried out in pieces, between what others want."""

from __future__ import annotations

import itertools

import pytest

from penstock.log import Columns
from penstock.sessions import Session
from penstock.wire.mqtt import (
    PacketKind,
    Properties,
    Property,
    Publishes,
    RequestedFilter,
    SubscribePacket,
    UnsubscribePacket,
    WillPacket,
    render_disconnect,
    render_publish,
    render_subscribe,
    render_unsubscribe,
)
from tests.unit.gateway.mqtt.scene import Client, Scene

LASTING: Properties = {Property.SESSION_EXPIRY_INTERVAL: 60}
MANY = 600


def hear_of_many(scene: Scene, client: Client, *, qos: int) -> Session:
    """The session of a client, which has heard of many topics."""
    client.subscribe("n/#", qos=qos)
    for number in range(MANY):
        scene.broker.publish(f"n/{number}", Columns([b"x"]))
    scene.commit()
    for one in client.messages():
        if one.packet_id:
            client.answer(PacketKind.PUBACK, one.packet_id)
    client.packets()
    session = scene.broker.sessions.get("ann")
    assert session is not None
    assert len(session.topics) == MANY
    return session


def subscribe(*filters: str, qos: int = 0) -> bytes:
    wanted = [RequestedFilter(one, qos) for one in filters]
    return render_subscribe(5, SubscribePacket(packet_id=7, filters=wanted))


def unsubscribe(*filters: str) -> bytes:
    return render_unsubscribe(5, UnsubscribePacket(packet_id=8, filters=list(filters)))


def publish(topic: str) -> bytes:
    packet = Publishes(
        topic=topic, qos=0, retain=False, dup=False, payloads=[b"x"], packet_ids=None
    )
    return render_publish(5, packet)


def begin(scene: Scene, client: Client, data: bytes) -> None:
    """One read of the server, and nothing that follows from it."""
    client.gateway.receive(data, scene.clock.now_s())
    assert client.gateway.busy


@pytest.mark.slow
def test_filters_count_for_topics_that_were_heard_of_piece_by_piece(
    scene: Scene,
) -> None:
    client = scene.client(properties=LASTING)
    session = hear_of_many(scene, client, qos=0)

    begin(scene, client, subscribe("n/+", qos=1))
    tough = [share.subscription.policy.qos for share in session.topics.values()]
    assert 0 < sum(tough) < MANY
    client.send(b"")

    assert client.suback() == [1]
    tough = [share.subscription.policy.qos for share in session.topics.values()]
    assert tough == [1] * MANY
    scene.broker.publish("n/0", Columns([b"y"]))
    scene.commit()
    assert client.payloads() == [b"y"]


def test_what_comes_behind_waits_for_it(scene: Scene) -> None:
    client = scene.client()
    hear_of_many(scene, client, qos=0)

    begin(scene, client, unsubscribe("n/#") + publish("other"))
    assert not scene.broker.log.has_topic("other")
    client.send(b"")

    assert client.unsuback() == [0]
    assert scene.broker.log.has_topic("other")


@pytest.mark.slow
def test_what_was_begun_is_completed_without_the_client(scene: Scene) -> None:
    client = scene.client(properties=LASTING)
    session = hear_of_many(scene, client, qos=1)

    begin(scene, client, unsubscribe("n/#"))
    client.drop()
    assert session.topics
    for _ in range(MANY):
        scene.hub.tick(scene.clock.now_s())

    assert not session.topics
    assert not scene.broker.subscriptions.of_subscriber(session.name)


def test_a_goodbye_that_waits_for_its_turn_counts(scene: Scene) -> None:
    will = WillPacket(topic="gone", payload=b"bye", qos=1)
    client = scene.client(will=will)
    hear_of_many(scene, client, qos=0)

    begin(scene, client, unsubscribe("n/#") + render_disconnect(5, 0, None))
    client.drop()
    scene.commit()

    assert not scene.broker.log.has_topic("gone")


def test_new_topics_that_match_many_filters_have_turns_of_their_own(
    scene: Scene,
) -> None:
    client, writer = scene.client(), scene.client("writer")
    ways = itertools.product("a+", repeat=9)
    client.subscribe(*("/".join(way) + "/#" for way in ways), qos=1)
    topics = [f"{'a/' * 9}{number}" for number in range(20)]
    client.packets()

    begin(scene, writer, b"".join(map(publish, topics)))
    assert sum(scene.broker.log.has_topic(topic) for topic in topics) < len(topics)
    writer.send(b"")

    assert sorted(one.topic for one in client.messages()) == sorted(topics)


@pytest.mark.slow
def test_a_client_that_comes_back_hears_by_all_its_filters(scene: Scene) -> None:
    client = scene.client(properties=LASTING)
    session = hear_of_many(scene, client, qos=1)
    client.subscribe(
        *(f"n/{number}" for number in range(MANY)),
        properties={Property.SUBSCRIPTION_IDENTIFIER: 5},
    )
    client.drop()

    client = scene.client(clean=False, properties=LASTING)
    for _ in range(MANY):
        scene.hub.tick(scene.clock.now_s())
    client.packets()

    terms = {
        scene.broker.sessions.routes.terms(session, share)
        for share in session.topics.values()
    }
    assert [(one.qos, one.identifiers) for one in terms] == [(1, (5,))]
