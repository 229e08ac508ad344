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
    TopicFilter,
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


# Which packet of a client may have which property: table 2-4 of the specification.
MESSAGE = {1, 2, 3, 8, 9, 38}
OF_CLIENTS = {
    "CONNECT": {17, 21, 22, 23, 25, 33, 34, 38, 39},
    "will": MESSAGE | {24},
    "PUBLISH": MESSAGE | {11, 35},
    **dict.fromkeys(("PUBACK", "PUBREC", "PUBREL", "PUBCOMP"), {31, 38}),
    "SUBSCRIBE": {11, 38},
    "UNSUBSCRIBE": {38},
    "DISCONNECT": {17, 28, 31, 38},
    "AUTH": {21, 22, 31, 38},
}
KINDS = {"PUBACK": 4, "PUBREC": 5, "PUBREL": 6, "PUBCOMP": 7}
EVERY = (*packets.BYTES, *packets.SHORTS, *packets.LONGS, *packets.TEXTS, 9, 11, 22, 38)
UNKNOWN = [0, 4, 10, 20, 27, 32, 43, 127, 128, 300]


def with_properties(packet: str, data: bytes) -> bytes:
    """A packet of a client that is right but for the properties, given as bytes."""
    pairs = packets.varint(len(data)) + data
    name = packets.text("t")
    head = packets.binary(b"MQTT") + b"\5"
    if packet in KINDS:
        return packets.packet(
            KINDS[packet], b"\0\1\0" + pairs, flags=2 * (packet == "PUBREL")
        )
    bodies = {
        "CONNECT": (1, 0, head + b"\2\0\0" + pairs + name),
        "will": (1, 0, head + b"\6\0\0\0" + name + pairs + name + b"\0\0"),
        "PUBLISH": (3, 0, name + pairs),
        "SUBSCRIBE": (8, 2, b"\0\1" + pairs + name + b"\0"),
        "UNSUBSCRIBE": (10, 2, b"\0\1" + pairs + name),
        "DISCONNECT": (14, 0, b"\0" + pairs),
        "AUTH": (15, 0, b"\x18" + pairs),
    }
    kind, flags, body = bodies[packet]
    return packets.packet(kind, body, flags=flags)


def property_bytes(identifier: int) -> bytes:
    value: object = 1
    if identifier == packets.USER_PROPERTY:
        value = ("a", "b")
    elif identifier in packets.TEXTS:
        value = "a"
    elif identifier in packets.BINARIES:
        value = b"a"
    return packets.one_property(identifier, value)


def answered(dial: Join, packet: str, data: bytes) -> int | None:
    """The reason that a packet with these properties is refused with, if it is."""
    peer = dial()
    if packet not in ("CONNECT", "will"):
        assert peer.connect("").reason == 0
    peer.send(with_properties(packet, data))
    if packet not in ("DISCONNECT", "AUTH"):
        peer.send(packets.packet(packets.PINGREQ, b"") + packets.disconnect())
    said = [one for one in peer.closed() if one.kind in (CONNACK, 14) and one.reason]
    peer.drop()
    return said[0].reason if said else None


@pytest.mark.parametrize("packet", OF_CLIENTS)
@statement("MQTT-4.13.1-1", "MQTT-3.1.4-1")
def test_a_property_in_the_wrong_packet_is_malformed(dial: Join, packet: str) -> None:
    wrong = [one for one in EVERY if one not in OF_CLIENTS[packet]]

    found = {one: answered(dial, packet, property_bytes(one)) for one in wrong}

    assert found == dict.fromkeys(wrong, 0x81)


@pytest.mark.parametrize("packet", OF_CLIENTS)
@statement("MQTT-4.13.1-1", "MQTT-3.1.4-1")
def test_a_property_that_does_not_exist_is_malformed(dial: Join, packet: str) -> None:
    found = {
        one: answered(dial, packet, packets.varint(one) + b"\0\0") for one in UNKNOWN
    }

    assert found == dict.fromkeys(UNKNOWN, 0x81)


@pytest.mark.parametrize("again", [True, False], ids=["whole", "cut"])
@pytest.mark.parametrize("packet", OF_CLIENTS)
@statement("MQTT-4.13.1-1", "MQTT-3.1.4-1")
def test_a_property_that_comes_twice_is_a_protocol_error(
    dial: Join, packet: str, again: bool
) -> None:
    """Whatever its second value is; user properties alone may come again."""
    once = sorted(OF_CLIENTS[packet] - {packets.USER_PROPERTY})

    found = {
        one: answered(
            dial, packet, (data := property_bytes(one)) + (data if again else data[:1])
        )
        for one in once
    }

    assert found == dict.fromkeys(once, 0x82)


@pytest.mark.parametrize("packet", OF_CLIENTS)
@statement("MQTT-4.13.1-1")
def test_user_properties_may_come_again(dial: Join, packet: str) -> None:
    reason = answered(dial, packet, property_bytes(packets.USER_PROPERTY) * 3)

    assert reason == (0x82 if packet == "AUTH" else None), "AUTH was not asked for"


# Wrong as far as it has come, whatever may follow.
CUT_CONNECTS = {
    "flags": b"\x11",
    "another name": b"\x10\x20\0\4MQTX",
    "a name that is too long": b"\x10\x20\0\x40MQ",
    "another level": b"\x10\x20\0\4MQTT\x09",
    "the reserved flag": b"\x10\x20\0\4MQTT\4\3",
    "a will of QoS 3": b"\x10\x20\0\4MQTT\4\x1e",
    "a property twice": b"\x10\x20\0\4MQTT\5\2\0\0\x0a\x21\0\1\x21",
    "a client id that is not UTF-8": b"\x10\x20\0\4MQTT\4\2\0\0\0\1\xff",
    "a client id that begins as no UTF-8": b"\x10\x20\0\4MQTT\4\2\0\0\0\x10\xff",
    "a client id that begins with NUL": b"\x10\x20\0\4MQTT\4\2\0\0\0\x10\0",
    "a will for no topic": b"\x10\x20\0\4MQTT\4\6\0\0\0\1a\0\x08a\xff",
    "bytes left over": b"\x10\x20\0\4MQTT\4\2\0\0\0\1a",
}


@pytest.mark.parametrize("byte_by_byte", [False, True], ids=["at once", "in bytes"])
@pytest.mark.parametrize("data", CUT_CONNECTS.values(), ids=CUT_CONNECTS)
@statement("MQTT-3.1.4-1", "MQTT-4.13.1-1")
@statement311("MQTT-3.1.4-1", "MQTT-4.8.0-1")
def test_a_connect_that_goes_wrong_is_not_waited_for(
    dial: Join, data: bytes, byte_by_byte: bool
) -> None:
    peer = dial()

    size = 1 if byte_by_byte else len(data)
    for at in range(0, len(data), size):
        peer.send(data[at : at + size])

    said = peer.rest()
    assert said[:1] in (b"", b"\x20"), "a CONNACK, if anything"


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
    data += packets.subscribe(1, [TopicFilter(filter=topic, qos=1)], version=version)
    data += packets.publish(topic, b"x" * 200, qos=1, packet_id=2, version=version)
    peer = dial(version)

    for at in range(0, len(data), 3):
        peer.send(data[at : at + 3])

    assert peer.take(PUBLISH).payload == b"x" * 200
