"""Chapter 4.13, and 4.8 of version 3.1.1: packets that break the rules."""

from __future__ import annotations

import pytest

from tests.conformance import packets
from tests.conformance.expect import broken_off, turned_away
from tests.conformance.packets import (
    CONNACK,
    PINGRESP,
    PUBLISH,
    SUBACK,
    UNSUBACK,
    Wish,
)
from tests.conformance.peer import Join
from tests.conformance.statements import statement, statement311

# What only a server sends.
OF_SERVERS = {
    "CONNACK": packets.packet(CONNACK, b"\0\0"),
    "SUBACK": packets.packet(SUBACK, b"\0\1\0"),
    "UNSUBACK": packets.packet(UNSUBACK, b"\0\1"),
    "PINGRESP": packets.packet(PINGRESP, b""),
}


@pytest.mark.parametrize("data", OF_SERVERS.values(), ids=OF_SERVERS)
@statement("MQTT-4.13.1-1")
@statement311("MQTT-4.8.0-1")
def test_a_packet_that_only_servers_send_ends_the_connection(
    join: Join, version: int, data: bytes
) -> None:
    peer = join(version)

    peer.send(data)

    broken_off(peer)


CUT = {
    "PUBLISH without a topic": packets.packet(PUBLISH, b""),
    "PUBLISH with a topic cut": packets.packet(PUBLISH, b"\0\5ab"),
    "PUBLISH without its identifier": packets.packet(PUBLISH, b"\0\1a", flags=2),
    "SUBSCRIBE without its options": packets.packet(8, b"\0\1\0\1a", flags=2),
    "SUBSCRIBE without anything": packets.packet(8, b"", flags=2),
    "UNSUBSCRIBE cut": packets.packet(10, b"\0\1\0\5a", flags=2),
    "PUBREL cut": packets.packet(packets.PUBREL, b"\0", flags=2),
    "length of five bytes": b"\x30\xff\xff\xff\xff\x01",
}


@pytest.mark.parametrize("data", CUT.values(), ids=CUT)
@statement("MQTT-4.13.1-1")
@statement311("MQTT-4.8.0-1")
def test_a_malformed_packet_ends_the_connection(
    join: Join, version: int, data: bytes
) -> None:
    peer = join(version)

    peer.send(data)

    broken_off(peer, 0x81, 0x82, 0x95)


@pytest.mark.parametrize("kind", [packets.PINGREQ, packets.DISCONNECT])
@statement311("MQTT-4.8.0-1")
def test_bytes_in_a_packet_that_has_none_end_the_connection(
    join: Join, kind: int
) -> None:
    peer = join(4)

    peer.send(packets.packet(kind, b"xx"))

    broken_off(peer)


PROPERTIES = {
    "one that is not defined": b"\x7f\x00",
    "one of CONNECT": packets.one_property(packets.RECEIVE_MAXIMUM, 5),
    "one cut": b"\x02\0\0",
    "one twice": packets.one_property(packets.PAYLOAD_FORMAT, 1) * 2,
    "content type twice": packets.one_property(packets.CONTENT_TYPE, "a") * 2,
    "payload format 2": packets.one_property(packets.PAYLOAD_FORMAT, 2),
}


@pytest.mark.parametrize("data", PROPERTIES.values(), ids=PROPERTIES)
@statement("MQTT-4.13.1-1")
def test_a_publish_with_bad_properties_ends_the_connection(
    join: Join, data: bytes
) -> None:
    peer = join()
    body = packets.text("t") + packets.varint(len(data)) + data + b"x"

    peer.send(packets.packet(PUBLISH, body))

    broken_off(peer)


@statement("MQTT-4.13.1-1")
def test_properties_longer_than_the_packet_end_the_connection(join: Join) -> None:
    peer = join()

    peer.send(packets.packet(PUBLISH, packets.text("t") + b"\x7fx"))

    broken_off(peer)


CONNECTS = {
    "receive maximum 0": (packets.RECEIVE_MAXIMUM, 0),
    "maximum packet size 0": (packets.MAXIMUM_PACKET_SIZE, 0),
    "request problem information 2": (packets.REQUEST_PROBLEM, 2),
    "request response information 2": (packets.REQUEST_RESPONSE, 2),
    "one of PUBLISH": (packets.TOPIC_ALIAS, 1),
}


@pytest.mark.parametrize("pair", CONNECTS.values(), ids=CONNECTS)
@statement("MQTT-3.1.4-1", "MQTT-4.13.1-1")
def test_a_connect_with_bad_properties_is_turned_away(
    dial: Join, pair: tuple[int, object]
) -> None:
    peer = dial()

    peer.send(packets.connect("me", pairs=[pair]))

    turned_away(peer)


@pytest.mark.parametrize("identifier", [17, 33, 34, 39, 23, 25])
@statement("MQTT-3.1.4-1", "MQTT-4.13.1-1")
def test_a_connect_with_a_property_twice_is_turned_away(
    dial: Join, identifier: int
) -> None:
    peer = dial()

    peer.send(packets.connect("me", pairs=[(identifier, 1)] * 2))

    turned_away(peer)


@statement311("MQTT-4.8.0-1")
def test_one_client_that_breaks_the_rules_does_not_trouble_another(
    join: Join, version: int, topic: str
) -> None:
    good, bad = join(version), join(version)
    good.subscribe(topic, qos=1)

    bad.send(packets.publish(topic, b"before", version=version))
    bad.send(packets.packet(PUBLISH, b"\0\5ab"))
    bad.closed()

    good.publish(topic, b"after", qos=1)
    assert [one.payload for one in good.until(b"after")] == [b"before"]


@statement("MQTT-4.2.0-1")
@statement311("MQTT-7.1.1-1")
def test_packets_may_come_in_any_pieces(dial: Join, version: int, topic: str) -> None:
    data = packets.connect("", version=version)
    data += packets.subscribe(1, [Wish(filter=topic, qos=1)], version=version)
    data += packets.publish(topic, b"x" * 200, qos=1, packet_id=2, version=version)
    peer = dial(version)

    for at in range(0, len(data), 3):
        peer.send(data[at : at + 3])

    assert peer.take(PUBLISH).payload == b"x" * 200
