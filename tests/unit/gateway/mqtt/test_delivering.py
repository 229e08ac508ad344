"""Events as packets: how each is said to the client."""

from __future__ import annotations

import pytest

from penstock.gateway.mqtt.delivering import headers_at, retained_topic, terms_of
from penstock.gateway.mqtt.headers import EXPIRES
from penstock.log import Columns
from penstock.sessions import TopicFilter
from penstock.sessions.retained import TOPIC as RETAINED
from penstock.sessions.session import DeliveryTerms
from penstock.wire.mqtt import PacketKind, Properties, Property, RequestedFilter
from tests.unit.gateway.mqtt.scene import Client, Scene

USER = Property.USER_PROPERTY


def subscriber(
    scene: Scene,
    *wanted: str | RequestedFilter,
    qos: int = 2,
    version: int = 5,
    properties: Properties | None = None,
) -> Client:
    client = scene.client("ann", version=version, properties=properties)
    client.subscribe(*(wanted or ("t",)), qos=qos)
    client.packets()
    return client


def event(scene: Scene, *payloads: bytes, topic: str = "t", **columns: object) -> None:
    """Events of another protocol, in one frame."""
    scene.broker.publish(topic, Columns(list(payloads), **columns))  # type: ignore[arg-type]
    scene.commit()


# QoS


@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("wanted", [0, 1, 2])
@pytest.mark.parametrize("version", [4, 5])
def test_a_delivery_has_the_lower_qos_of_publish_and_subscription(
    scene: Scene, published: int, wanted: int, version: int
) -> None:
    client = subscriber(scene, qos=wanted, version=version)
    writer = scene.client("writer")

    writer.publish("t", b"x", qos=published, ids=[1] if published else None)

    (one,) = client.messages()
    assert one.qos == min(published, wanted)
    assert bool(one.packet_id) is bool(one.qos)


def test_a_frame_of_several_qos_is_told_apart(scene: Scene) -> None:
    client = subscriber(scene)
    scene.commits = False
    writer = scene.client("writer")
    for qos, payloads in ((0, b"ab"), (1, b"cd"), (2, b"e"), (0, b"f")):
        ids = list(range(1, len(payloads) + 1)) if qos else None
        writer.publish("t", *[b"%c" % one for one in payloads], qos=qos, ids=ids)
    scene.commits = True
    scene.commit()

    found = [(one.payload, one.qos) for one in client.messages()]

    assert found == [
        (b"a", 0),
        (b"b", 0),
        (b"c", 1),
        (b"d", 1),
        (b"e", 2),
        (b"f", 0),
    ]


def test_what_needs_no_answer_is_settled_by_being_sent(scene: Scene) -> None:
    client = scene.client("ann", properties={Property.SESSION_EXPIRY_INTERVAL: 60})
    client.subscribe("t", qos=1)
    client.packets()
    writer = scene.client("writer")
    writer.publish("t", b"a")
    assert client.payloads() == [b"a"]
    client.drop()

    again = scene.client(
        "ann", clean=False, properties={Property.SESSION_EXPIRY_INTERVAL: 60}
    )

    assert again.payloads() == []


def test_events_of_other_protocols_have_the_qos_that_is_wished_for(
    scene: Scene,
) -> None:
    client = subscriber(scene, qos=2)

    event(scene, b"x", headers=[{"a": "b"}], priorities=[3])

    (one,) = client.messages()
    assert one.qos == 2
    assert one.properties == {USER: [("a", "b"), ("priority", "3")]}


def test_old_clients_get_the_payload_alone(scene: Scene) -> None:
    client = subscriber(scene, version=4)

    event(scene, b"x", b"y", headers=[{"a": "b"}, {}], priorities=[3, 0])

    assert client.payloads() == [b"x", b"y"]


# What is left out


def test_no_local_leaves_out_what_the_client_published_itself(scene: Scene) -> None:
    client = subscriber(scene, RequestedFilter("t", 1, no_local=True))
    other = scene.client("other")
    scene.commits = False
    for who, payload in ((client, b"mine"), (other, b"theirs"), (client, b"mine")):
        who.publish("t", payload, qos=1, ids=[1])
    scene.commits = True
    scene.commit()

    assert client.payloads() == [b"theirs"]


def test_without_no_local_a_client_hears_itself(scene: Scene) -> None:
    client = subscriber(scene, RequestedFilter("t", 1, no_local=True), "+")

    client.publish("t", b"mine", qos=1, ids=[1])

    assert client.payloads() == [b"mine"]


def test_what_has_expired_is_left_out_and_the_rest_told_its_time(
    scene: Scene,
) -> None:
    properties: Properties = {Property.SESSION_EXPIRY_INTERVAL: 600}
    client = subscriber(scene, qos=1, properties=properties)
    client.drop()
    writer = scene.client("writer")
    for number, seconds in enumerate((5, 100), 1):
        expiry: Properties = {Property.MESSAGE_EXPIRY_INTERVAL: seconds}
        writer.publish("t", b"x", qos=1, ids=[number], properties=expiry)
    scene.advance(10.0)

    again = scene.client("ann", clean=False, properties=properties)

    (one,) = again.messages()
    assert one.properties == {Property.MESSAGE_EXPIRY_INTERVAL: 90}
    again.answer(PacketKind.PUBACK, one.packet_id)
    again.drop()
    assert scene.client("ann", clean=False, properties=properties).messages() == []


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_an_old_event_expires_by_its_header(scene: Scene, qos: int) -> None:
    client = subscriber(scene, qos=qos)
    now_ms = scene.broker.log.now_ms()

    for payload, end_ms in ((b"over", now_ms), (b"counts", now_ms + 5_000)):
        event(scene, payload, headers=[{EXPIRES: str(end_ms)}])

    (one,) = client.messages()
    assert one.payload == b"counts"
    assert one.properties == {Property.MESSAGE_EXPIRY_INTERVAL: 5}


def test_what_is_too_large_for_the_client_is_left_out(scene: Scene) -> None:
    properties: Properties = {
        Property.MAXIMUM_PACKET_SIZE: 100,
        Property.RECEIVE_MAXIMUM: 1,
    }
    client = subscriber(scene, qos=1, properties=properties)

    event(scene, b"a", bytes(200), b"b")

    first = client.messages()
    client.answer(PacketKind.PUBACK, first[0].packet_id)
    assert [one.payload for one in first + client.messages()] == [b"a", b"b"]


# What is said


def test_retain_as_published_says_what_the_publish_said(scene: Scene) -> None:
    client = subscriber(scene, RequestedFilter("t", 1, retain_as_published=True))
    plain = scene.client("plain")
    plain.subscribe("t", qos=1)
    plain.packets()
    writer = scene.client("writer")

    writer.publish("t", b"a", qos=1, ids=[1], retain=True)
    writer.publish("t", b"b", qos=1, ids=[2])

    assert [one.retain for one in client.messages()] == [True, False]
    assert [one.retain for one in plain.messages()] == [False, False]


def test_subscription_identifiers_of_all_wishes_are_told(scene: Scene) -> None:
    client = scene.client("ann")
    for filter_, identifier in (("t", 5), ("#", 3), ("+", 0)):
        given: Properties = {}
        if identifier:
            given = {Property.SUBSCRIPTION_IDENTIFIER: identifier}
        client.subscribe(filter_, qos=1, properties=given)
    client.packets()

    event(scene, b"x")

    (one,) = client.messages()
    assert one.properties == {Property.SUBSCRIPTION_IDENTIFIER: [3, 5]}


def test_aliases_are_used_as_far_as_the_client_allows(scene: Scene) -> None:
    client = subscriber(scene, "#", properties={Property.TOPIC_ALIAS_MAXIMUM: 1})

    for topic in ("a", "a", "b"):
        event(scene, b"x", topic=topic)

    assert [one.topic for one in client.messages()] == ["a", "", "b"]


# Helpers


def test_retained_messages_are_told_as_the_wish_for_them_says() -> None:
    topic_filter = TopicFilter("t", 1, no_local=True, identifier=4)

    assert terms_of(topic_filter) == DeliveryTerms(1, False, True, (4,))
    assert terms_of(TopicFilter("t", 2)) == DeliveryTerms(2, False, True, ())


def test_headers_of_an_event_are_its_own_or_those_of_all(scene: Scene) -> None:
    event(scene, b"a", b"b", headers=[{"x": "1"}, {"x": "2"}])
    event(scene, b"c", b"d", headers=[{"x": "3"}, {"x": "3"}], topic="u")
    pages = scene.broker.pages

    mixed, alike = pages.at("t", 0), pages.at("u", 0)

    assert mixed is not None and alike is not None
    assert [headers_at(mixed, at) for at in (0, 1)] == [{"x": "1"}, {"x": "2"}]
    assert [headers_at(alike, at) for at in (0, 1)] == [{"x": "3"}, {"x": "3"}]


def test_the_key_of_a_retained_message_is_its_topic(scene: Scene) -> None:
    scene.broker.publish("a/ä", Columns([b"x"]), keep=True)
    scene.commit()
    page = scene.broker.pages.at(RETAINED, 0)

    assert page is not None
    assert retained_topic(page, 0) == "a/ä"
