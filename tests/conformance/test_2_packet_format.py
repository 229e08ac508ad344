"""Chapter 2: flags of the fixed header, packet identifiers, properties."""

from __future__ import annotations

import pytest

from tests.conformance import packets
from tests.conformance.expect import broken_off, turned_away
from tests.conformance.packets import (
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    SUBACK,
    UNSUBACK,
    TopicFilter,
)
from tests.conformance.peer import Join
from tests.conformance.statements import statement, statement311

# Packet -> a body that is well-formed in both versions, and flags that are not.
FLAGS = {
    "PUBACK": (PUBACK, packets.short(1), 1),
    "PUBREC": (PUBREC, packets.short(1), 2),
    "PUBREL": (PUBREL, packets.short(1), 0),
    "PUBREL with 3": (PUBREL, packets.short(1), 3),
    "PUBCOMP": (PUBCOMP, packets.short(1), 8),
    "PINGREQ": (packets.PINGREQ, b"", 1),
    "DISCONNECT": (packets.DISCONNECT, b"", 4),
}


@pytest.mark.parametrize(("kind", "body", "flags"), FLAGS.values(), ids=FLAGS)
@statement("MQTT-2.1.3-1", "MQTT-3.6.1-1", "MQTT-3.14.1-1")
@statement311("MQTT-2.2.2-1", "MQTT-2.2.2-2", "MQTT-3.6.1-1", "MQTT-3.14.1-1")
def test_reserved_flags_end_the_connection(
    join: Join, version: int, kind: int, body: bytes, flags: int
) -> None:
    peer = join(version)

    peer.send(packets.packet(kind, body, flags=flags))

    broken_off(peer)


@pytest.mark.parametrize("flags", [0, 1, 3, 10])
@statement("MQTT-2.1.3-1", "MQTT-3.8.1-1")
@statement311("MQTT-2.2.2-1", "MQTT-2.2.2-2", "MQTT-3.8.1-1")
def test_flags_of_a_subscribe_are_two(
    join: Join, version: int, topic: str, flags: int
) -> None:
    peer = join(version)
    data = packets.subscribe(1, [TopicFilter(filter=topic)], version=version)

    peer.send(bytes([data[0] & 0xF0 | flags]) + data[1:])

    broken_off(peer)


@pytest.mark.parametrize("flags", [0, 1, 3, 10])
@statement("MQTT-2.1.3-1", "MQTT-3.10.1-1")
@statement311("MQTT-2.2.2-1", "MQTT-2.2.2-2", "MQTT-3.10.1-1")
def test_flags_of_an_unsubscribe_are_two(
    join: Join, version: int, topic: str, flags: int
) -> None:
    peer = join(version)
    data = packets.unsubscribe(1, [topic], version=version)

    peer.send(bytes([data[0] & 0xF0 | flags]) + data[1:])

    broken_off(peer)


@statement("MQTT-2.1.3-1")
@statement311("MQTT-2.2.2-1", "MQTT-2.2.2-2")
def test_flags_of_a_connect_are_zero(dial: Join, version: int) -> None:
    peer = dial(version)
    data = packets.connect("me", version=version)

    peer.send(bytes([data[0] | 1]) + data[1:])

    turned_away(peer)


@pytest.mark.parametrize("kind", [0, 15])
@statement311("MQTT-4.8.0-1", "MQTT-2.2.2-2")
def test_a_reserved_packet_type_ends_the_connection(join: Join, kind: int) -> None:
    peer = join(4)

    peer.send(packets.packet(kind, b""))

    broken_off(peer)


@statement("MQTT-2.2.1-2", "MQTT-2.2.2-1")
@statement311("MQTT-2.3.1-5")
def test_a_message_of_qos_0_has_no_packet_identifier(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.subscribe(topic, qos=2)

    peer.publish(topic, b"\1\2payload")

    assert peer.receive().payload == b"\1\2payload"


@statement("MQTT-2.2.1-3")
@statement311("MQTT-2.3.1-1")
def test_packet_identifier_0_ends_the_connection(
    join: Join, version: int, topic: str
) -> None:
    for data in (
        packets.publish(topic, qos=1, packet_id=0, version=version),
        packets.publish(topic, qos=2, packet_id=0, version=version),
        packets.subscribe(0, [TopicFilter(filter=topic)], version=version),
        packets.unsubscribe(0, [topic], version=version),
    ):
        peer = join(version)

        peer.send(data)

        broken_off(peer)


@pytest.mark.parametrize("qos", [1, 2])
@statement("MQTT-2.2.1-4", "MQTT-4.3.2-1", "MQTT-4.3.3-1")
@statement311("MQTT-2.3.1-1", "MQTT-2.3.1-4", "MQTT-4.3.2-1", "MQTT-4.3.3-1")
def test_unsettled_messages_have_packet_identifiers_of_their_own(
    join: Join, version: int, topic: str, qos: int
) -> None:
    peer = join(version)
    peer.subscribe(topic, qos=qos)
    for _ in range(15):
        peer.publish(topic, qos=qos)

    unsettled = [peer.take(PUBLISH).packet_id for _ in range(15)]

    assert len(set(unsettled)) == 15


@statement("MQTT-2.2.1-4")
@statement311("MQTT-2.3.1-4")
def test_an_unsettled_identifier_is_not_used_when_all_others_were(
    join: Join, topic: str
) -> None:
    peer = join(client_id=topic)
    peer.subscribe(topic, qos=1)
    peer.publish(topic, b"held", qos=1)
    held = peer.take(PUBLISH)
    burst = b"".join(
        packets.publish(topic, qos=1, packet_id=at) for at in range(1, 501)
    )

    for _ in range(132):
        peer.send(burst)
        owed: list[bytes] = []
        left = 500
        while left:
            if (message := peer.read()).kind == PUBLISH:
                assert message.packet_id != held.packet_id
                owed.append(packets.ack(PUBACK, message.packet_id))
                left -= 1
            if len(owed) == 10:
                peer.send(b"".join(owed))
                owed.clear()


@statement("MQTT-2.2.1-5", "MQTT-4.3.2-4", "MQTT-4.3.3-8", "MQTT-4.3.3-11")
@statement311("MQTT-2.3.1-6", "MQTT-4.3.2-2", "MQTT-4.3.3-2")
def test_answers_have_the_identifier_of_their_publish(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)

    peer.send(packets.publish(topic, qos=1, packet_id=65535, version=version))
    assert peer.take(PUBACK).packet_id == 65535
    peer.send(packets.publish(topic, qos=2, packet_id=256, version=version))
    assert peer.take(PUBREC).packet_id == 256
    peer.ack(PUBREL, 256)
    assert peer.take(PUBCOMP).packet_id == 256


@statement("MQTT-2.2.1-5", "MQTT-4.3.3-4")
@statement311("MQTT-2.3.1-6", "MQTT-4.3.3-1")
def test_a_pubrel_has_the_identifier_of_its_message(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.subscribe(topic, qos=2)
    peer.publish(topic, qos=2)
    message = peer.take(PUBLISH)

    peer.ack(PUBREC, message.packet_id)

    assert peer.take(PUBREL).packet_id == message.packet_id


@statement("MQTT-2.2.1-6", "MQTT-3.8.4-1", "MQTT-3.8.4-2", "MQTT-3.10.4-4")
@statement311("MQTT-2.3.1-7", "MQTT-3.8.4-1", "MQTT-3.8.4-2", "MQTT-3.10.4-4")
def test_subscribing_and_unsubscribing_are_answered_with_their_identifiers(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)

    peer.send(packets.subscribe(65535, [TopicFilter(filter=topic)], version=version))
    assert peer.take(SUBACK).packet_id == 65535
    peer.send(packets.unsubscribe(4711, [topic], version=version))
    assert peer.take(UNSUBACK).packet_id == 4711


@statement("MQTT-2.2.2-1")
def test_packets_without_properties_say_so(join: Join, topic: str) -> None:
    peer = join()

    answers = [peer.subscribe(topic), peer.unsubscribe(topic)]

    assert all(one.properties == [] for one in answers)
