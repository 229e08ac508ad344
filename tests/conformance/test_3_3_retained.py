"""Chapters 3.3.1.3 and 3.8.3.1: messages that are retained."""

from __future__ import annotations

import pytest

from tests.conformance.packets import (
    CONTENT_TYPE,
    SUBSCRIPTION_ID,
    USER_PROPERTY,
    TopicFilter,
)
from tests.conformance.peer import Join
from tests.conformance.server import Endpoints
from tests.conformance.statements import statement, statement311


@pytest.mark.parametrize("qos", [0, 1, 2])
@statement("MQTT-3.3.1-5", "MQTT-3.3.1-9")
@statement311("MQTT-3.3.1-5", "MQTT-3.3.1-6", "MQTT-3.3.1-7", "MQTT-3.3.1-8")
def test_the_last_retained_message_is_kept_for_new_subscribers(
    join: Join, version: int, topic: str, qos: int
) -> None:
    publisher = join(version)
    publisher.publish(topic, b"old", qos=2, retain=True)
    publisher.publish(topic, b"new", qos=qos, retain=True)
    publisher.ping()
    peer = join(version)

    peer.subscribe(topic, qos=2)

    message = peer.receive()
    assert (message.payload, message.qos, message.retain) == (b"new", qos, True)
    peer.publish(topic, b"end", qos=qos)
    assert peer.until(b"end") == []


@statement("MQTT-3.3.1-9")
@statement311("MQTT-3.3.1-6")
def test_a_wildcard_finds_every_retained_message(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    names = [f"{topic}/{at}/x" for at in range(20)]
    for name in (*names, f"{topic}/y", f"{topic}/1/x/z"):
        peer.publish(name, name.encode(), qos=1, retain=True)

    peer.subscribe(f"{topic}/+/x")

    got = [peer.receive() for _ in names]
    assert sorted(one.topic for one in got) == sorted(names)
    assert all(one.retain and one.payload.decode() == one.topic for one in got)


@pytest.mark.parametrize("qos", [0, 1, 2])
@statement("MQTT-3.3.1-6", "MQTT-3.3.1-7")
@statement311("MQTT-3.3.1-11")
def test_an_empty_message_takes_away_what_a_choosy_topic_retained(
    join: Join, server: Endpoints, version: int, qos: int
) -> None:
    """Though it does not fit what the topic takes."""
    publisher = join(version)
    publisher.publish(server.choosy, b"5", qos=2, retain=True)

    answer = publisher.publish(server.choosy, b"", qos=qos, retain=True)

    assert answer is None or answer.reason < 0x80
    publisher.ping()
    peer = join(version)
    peer.subscribe(server.choosy, qos=qos)
    peer.publish(server.choosy, b"6", qos=qos)
    assert peer.until(b"6") == []


@statement("MQTT-3.3.1-12")
@statement311("MQTT-3.3.1-9")
def test_a_message_for_a_subscription_there_was_is_not_marked_retained(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.subscribe(topic)

    peer.publish(topic, b"x", retain=True)

    assert not peer.receive().retain


@statement("MQTT-3.3.1-6", "MQTT-3.3.1-7")
@statement311("MQTT-3.3.1-10", "MQTT-3.3.1-11")
def test_an_empty_message_removes_the_retained_one(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.subscribe(topic, qos=1)
    peer.publish(topic, b"x", qos=1, retain=True)
    peer.publish(topic, b"", qos=1, retain=True)

    assert [peer.receive().payload for _ in range(2)] == [b"x", b""]
    late = join(version)
    late.subscribe(topic, qos=1)
    late.publish(topic, b"end", qos=1)
    assert late.until(b"end") == []


@statement("MQTT-3.3.1-8")
@statement311("MQTT-3.3.1-12")
def test_a_plain_message_leaves_the_retained_one_alone(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.publish(f"{topic}/1", b"kept", qos=1, retain=True)
    peer.publish(f"{topic}/1", b"plain", qos=1)
    peer.publish(f"{topic}/1", b"", qos=1)
    peer.publish(f"{topic}/2", b"plain", qos=1)

    peer.subscribe(f"{topic}/+", qos=1)

    peer.publish(f"{topic}/1", b"end", qos=1)
    assert [one.payload for one in peer.until(b"end")] == [b"kept"]


@pytest.mark.parametrize(
    ("handling", "first", "second"),
    [(0, [b"kept"], [b"kept"]), (1, [b"kept"], []), (2, [], [])],
)
@statement("MQTT-3.3.1-9", "MQTT-3.3.1-10", "MQTT-3.3.1-11", "MQTT-3.8.4-4")
def test_retained_messages_are_sent_as_the_subscriber_wants(
    join: Join, topic: str, handling: int, first: list[bytes], second: list[bytes]
) -> None:
    peer = join()
    peer.publish(topic, b"kept", qos=1, retain=True)

    for expected in (first, second):
        peer.subscribe(TopicFilter(filter=topic, qos=1, handling=handling))
        peer.publish(topic, b"end", qos=1)
        assert [one.payload for one in peer.until(b"end")] == expected


@statement311("MQTT-3.8.4-3")
def test_retained_messages_are_sent_again_for_a_subscription_made_again(
    join: Join, topic: str
) -> None:
    peer = join(4)
    peer.publish(topic, b"kept", qos=1, retain=True)

    for qos in (0, 1):
        peer.subscribe(topic, qos=qos)
        message = peer.receive()
        assert (message.payload, message.qos) == (b"kept", qos)


@pytest.mark.parametrize("as_published", [False, True])
@statement("MQTT-3.3.1-12", "MQTT-3.3.1-13")
def test_the_flag_is_passed_on_if_the_subscriber_wants_it(
    join: Join, topic: str, as_published: bool
) -> None:
    peer = join()
    peer.subscribe(TopicFilter(filter=topic, as_published=as_published))

    peer.publish(topic, b"plain")
    peer.publish(topic, b"retained", retain=True)

    assert [peer.receive().retain for _ in range(2)] == [False, as_published]


@pytest.mark.parametrize("qos", [0, 1, 2])
@statement("MQTT-3.3.4-3", "MQTT-3.3.2-17", "MQTT-3.3.2-18", "MQTT-3.3.2-20")
def test_a_retained_message_keeps_its_properties_and_gets_the_identifier(
    join: Join, topic: str, qos: int
) -> None:
    peer = join()
    pairs = [(CONTENT_TYPE, "x/y"), *((USER_PROPERTY, (key, "v")) for key in "bab")]
    peer.publish(topic, b"kept", qos=2, retain=True, pairs=pairs)

    peer.subscribe(topic, qos=qos, pairs=[(SUBSCRIPTION_ID, 77)])

    message = peer.receive()
    assert (message.qos, message.retain) == (qos, True)
    assert message.all(SUBSCRIPTION_ID) == [77]
    assert message.get(CONTENT_TYPE) == "x/y"
    assert [key for key, _ in message.all(USER_PROPERTY)] == list("bab")
