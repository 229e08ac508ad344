"""Chapters 3.1.2.5 to 3.1.2.7, 3.1.3.2 and 3.1.3.3: wills."""

from __future__ import annotations

import time

import pytest

from tests.conformance import packets
from tests.conformance.expect import turned_away
from tests.conformance.packets import (
    CONTENT_TYPE,
    CORRELATION_DATA,
    MESSAGE_EXPIRY,
    PAYLOAD_FORMAT,
    RESPONSE_TOPIC,
    SESSION_EXPIRY,
    USER_PROPERTY,
    WILL_DELAY,
    Will,
    binary,
    text,
)
from tests.conformance.peer import Join
from tests.conformance.statements import statement, statement311

KEEP = (SESSION_EXPIRY, 100)


@pytest.mark.parametrize("qos", [0, 1, 2])
@statement("MQTT-3.1.2-7", "MQTT-3.1.2-8", "MQTT-3.1.2-12", "MQTT-3.1.2-14")
@statement("MQTT-3.2.2-12")
@statement311("MQTT-3.1.2-8", "MQTT-3.1.2-14", "MQTT-3.1.2-16")
def test_a_will_is_published_when_the_connection_breaks(
    join: Join, version: int, topic: str, qos: int
) -> None:
    watcher = join(version)
    watcher.subscribe(topic, qos=2)
    peer = join(version, will=Will(topic=topic, payload=b"gone", qos=qos))

    peer.drop()

    message = watcher.receive()
    assert (message.payload, message.qos, message.retain) == (b"gone", qos, False)
    watcher.subscribe(topic)
    watcher.publish(topic, b"end", qos=qos)
    assert watcher.until(b"end") == [], "it was not retained"


@statement("MQTT-3.1.2-8", "MQTT-4.13.1-1")
@statement311("MQTT-3.1.2-8")
def test_a_will_is_published_when_the_client_breaks_the_rules(
    join: Join, version: int, topic: str
) -> None:
    watcher = join(version)
    watcher.subscribe(topic)
    peer = join(version, will=Will(topic=topic))

    peer.send(packets.publish("a/#", version=version))

    assert watcher.receive().payload == b"gone"


@statement("MQTT-3.1.2-8")
def test_a_will_is_published_when_the_client_asks_for_it(
    join: Join, topic: str
) -> None:
    watcher = join()
    watcher.subscribe(topic)
    peer = join(will=Will(topic=topic))

    peer.disconnect(0x04)

    assert watcher.receive().payload == b"gone"


@statement("MQTT-3.1.2-8")
@statement311("MQTT-3.1.2-8")
def test_a_will_is_published_when_another_takes_over(
    join: Join, version: int, client_id: str, topic: str
) -> None:
    watcher = join(version)
    watcher.subscribe(topic)
    join(version, client_id, will=Will(topic=topic))

    join(version, client_id)

    assert watcher.receive().payload == b"gone"


@statement("MQTT-3.1.2-10", "MQTT-3.14.4-3", "MQTT-3.1.2-8")
@statement311("MQTT-3.1.2-10", "MQTT-3.14.4-3")
def test_a_will_is_dropped_when_the_client_says_goodbye(
    join: Join, version: int, topic: str
) -> None:
    watcher = join(version)
    watcher.subscribe(topic)
    peer = join(version, will=Will(topic=topic))

    peer.disconnect()

    watcher.publish(topic, b"end")
    assert watcher.until(b"end") == []


@statement("MQTT-3.1.2-10")
@statement311("MQTT-3.1.2-10", "MQTT-3.1.2-12")
def test_a_will_is_published_once(
    join: Join, version: int, client_id: str, topic: str
) -> None:
    watcher = join(version)
    watcher.subscribe(topic)
    keep = [KEEP]
    join(version, client_id, will=Will(topic=topic), clean=False, pairs=keep).drop()
    assert watcher.receive().payload == b"gone"

    join(version, client_id, clean=False, pairs=keep).drop()
    join(version, client_id, clean=False, pairs=keep).disconnect()

    watcher.publish(topic, b"end")
    assert watcher.until(b"end") == []


@statement("MQTT-3.1.2-15", "MQTT-3.2.2-13")
@statement311("MQTT-3.1.2-17")
def test_a_retained_will_is_kept(join: Join, version: int, topic: str) -> None:
    watcher = join(version)
    watcher.subscribe(topic)

    join(version, will=Will(topic=topic, qos=2, retain=True)).drop()

    assert not watcher.receive().retain
    late = join(version)
    late.subscribe(topic)
    kept = late.receive()
    assert (kept.payload, kept.retain) == (b"gone", True)


BAD = {
    "QoS without a will": 0x08,
    "retain without a will": 0x20,
    "will without its fields": 0x04,
}


@pytest.mark.parametrize("flags", BAD.values(), ids=BAD)
@statement("MQTT-3.1.2-9", "MQTT-3.1.2-11", "MQTT-3.1.2-13")
@statement311("MQTT-3.1.2-9", "MQTT-3.1.2-11", "MQTT-3.1.2-13", "MQTT-3.1.2-15")
def test_flags_and_fields_of_a_will_agree(dial: Join, version: int, flags: int) -> None:
    peer = dial(version)

    peer.send(packets.connect("me", version=version, extra_flags=flags))

    turned_away(peer)


@statement311("MQTT-3.1.2-11")
def test_fields_of_a_will_without_its_flag_are_turned_away(
    dial: Join, version: int
) -> None:
    peer = dial(version)

    peer.send(packets.connect(text("me") + text("t") + text("w"), version=version))

    turned_away(peer)


@statement("MQTT-3.1.2-12")
@statement311("MQTT-3.1.2-14")
def test_a_will_of_qos_3_is_turned_away(dial: Join, version: int) -> None:
    peer = dial(version)

    peer.send(packets.connect("me", version=version, will=Will(topic="t", qos=3)))

    turned_away(peer)


@pytest.mark.parametrize("name", [b"a\xe2\x82", b"a\0b"], ids=["cut", "null"])
@statement("MQTT-3.1.3-11")
@statement311("MQTT-3.1.3-10")
def test_a_will_topic_that_is_not_utf8_is_turned_away(
    dial: Join, version: int, name: bytes
) -> None:
    peer = dial(version)
    payload = text("me") + (b"\0" if version == 5 else b"") + binary(name) + text("w")

    peer.send(packets.connect(payload, version=version, extra_flags=4))

    turned_away(peer, 0x81, 0x82, 0x90)


@statement("MQTT-3.1.3-10", "MQTT-3.3.2-4", "MQTT-3.3.2-15", "MQTT-3.3.2-16")
def test_properties_of_a_will_are_published_with_it(join: Join, topic: str) -> None:
    watcher = join()
    watcher.subscribe(topic)
    pairs = [
        (PAYLOAD_FORMAT, 1),
        (CONTENT_TYPE, "text/plain"),
        (RESPONSE_TOPIC, "answers"),
        (CORRELATION_DATA, b"\0\1"),
        *((USER_PROPERTY, (key, "v")) for key in "cabac"),
    ]

    lasting = [*pairs, (MESSAGE_EXPIRY, 100)]
    join(will=Will(topic=topic, properties=lasting)).drop()

    message = watcher.receive()
    assert 90 <= message.get(MESSAGE_EXPIRY) <= 100
    message.properties = [one for one in message.properties if one[0] != MESSAGE_EXPIRY]
    assert sorted(message.properties[:], key=repr) == sorted(pairs, key=repr)
    assert [key for key, _ in message.all(USER_PROPERTY)] == list("cabac")


@statement("MQTT-3.1.2-8")
def test_a_will_waits_for_its_delay(join: Join, topic: str) -> None:
    watcher = join()
    watcher.subscribe(topic)
    will = Will(topic=topic, properties=[(WILL_DELAY, 1)])
    peer = join(will=will, pairs=[KEEP])
    begin_s = time.monotonic()

    peer.drop()

    assert watcher.receive().payload == b"gone"
    assert time.monotonic() >= begin_s + 0.9


@statement("MQTT-3.1.2-8")
def test_a_will_does_not_wait_longer_than_its_session(join: Join, topic: str) -> None:
    watcher = join()
    watcher.subscribe(topic)
    will = Will(topic=topic, properties=[(WILL_DELAY, 1000)])

    join(will=will).drop()
    assert watcher.receive().payload == b"gone"
    join(will=will, pairs=[(SESSION_EXPIRY, 1)]).drop()
    assert watcher.receive().payload == b"gone"


@statement("MQTT-3.1.2-8")
def test_a_will_of_a_session_that_is_replaced_does_not_wait(
    join: Join, client_id: str, topic: str
) -> None:
    watcher = join()
    watcher.subscribe(topic)
    will = Will(topic=topic, properties=[(WILL_DELAY, 1000)])
    join(client_id=client_id, will=will, pairs=[KEEP]).drop()

    join(client_id=client_id, clean=True)

    assert watcher.receive().payload == b"gone"


@statement("MQTT-3.1.3-9")
def test_a_will_is_forgotten_if_the_client_is_back_in_time(
    join: Join, client_id: str, topic: str
) -> None:
    watcher = join()
    watcher.subscribe(topic)
    will = Will(topic=topic, properties=[(WILL_DELAY, 1)])
    join(client_id=client_id, will=will, pairs=[KEEP]).drop()

    back = join(client_id=client_id, clean=False, pairs=[KEEP])

    end_s = time.monotonic() + 1.5
    while time.monotonic() < end_s:
        back.ping()
    watcher.publish(topic, b"end")
    assert watcher.until(b"end") == []
