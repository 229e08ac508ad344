"""Chapter 1.5: texts, numbers of variable length, pairs of texts."""

from __future__ import annotations

import pytest

from tests.conformance import packets
from tests.conformance.expect import broken_off, turned_away
from tests.conformance.packets import SUBSCRIBE, USER_PROPERTY, binary, short
from tests.conformance.peer import Join
from tests.conformance.statements import statement, statement311

SURROGATE = b"a\xed\xa0\x80"
CUT = b"a\xe2\x82"
OVERLONG = b"a\xc0\xaf"
BAD = {"surrogate": SURROGATE, "cut": CUT, "overlong": OVERLONG}
NULL = b"a\0b"


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
@statement("MQTT-1.5.4-1", "MQTT-3.1.3-4", "MQTT-3.1.4-1")
@statement311("MQTT-1.5.3-1", "MQTT-3.1.3-4", "MQTT-3.1.4-1")
def test_a_client_id_that_is_not_utf8_is_turned_away(
    dial: Join, version: int, data: bytes
) -> None:
    peer = dial(version)

    peer.send(packets.connect(binary(data), version=version))

    turned_away(peer, 0x81, 0x82, 0x85)


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
@statement("MQTT-1.5.4-1", "MQTT-3.1.3-12")
@statement311("MQTT-1.5.3-1", "MQTT-3.1.3-11")
def test_a_user_name_that_is_not_utf8_is_turned_away(
    dial: Join, version: int, data: bytes
) -> None:
    peer = dial(version)

    peer.send(packets.connect("me", version=version, user=binary(data)))

    turned_away(peer)


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
@statement("MQTT-1.5.4-1", "MQTT-3.3.2-1")
@statement311("MQTT-1.5.3-1", "MQTT-3.3.2-1")
def test_a_topic_that_is_not_utf8_ends_the_connection(
    join: Join, version: int, data: bytes
) -> None:
    peer = join(version)

    peer.send(packets.publish(binary(data), version=version))

    broken_off(peer, 0x81, 0x90)


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
@statement("MQTT-1.5.4-1", "MQTT-3.8.3-1")
@statement311("MQTT-1.5.3-1", "MQTT-3.8.3-1")
def test_a_filter_that_is_not_utf8_ends_the_connection(
    join: Join, version: int, data: bytes
) -> None:
    peer = join(version)
    head = short(1) + (b"\0" if version == 5 else b"")

    peer.send(packets.packet(SUBSCRIBE, head + binary(data) + b"\0", flags=2))

    broken_off(peer, 0x81, 0x8F)


@statement("MQTT-1.5.4-1", "MQTT-3.10.3-1")
@statement311("MQTT-1.5.3-1", "MQTT-3.10.3-1")
def test_a_filter_to_unsubscribe_that_is_not_utf8_ends_the_connection(
    join: Join, version: int
) -> None:
    peer = join(version)
    head = short(1) + (b"\0" if version == 5 else b"")

    peer.send(packets.packet(packets.UNSUBSCRIBE, head + binary(CUT), flags=2))

    broken_off(peer, 0x81, 0x8F)


@statement("MQTT-1.5.4-2", "MQTT-3.1.3-4")
@statement311("MQTT-1.5.3-2", "MQTT-3.1.3-4")
def test_a_client_id_with_a_null_is_turned_away(dial: Join, version: int) -> None:
    peer = dial(version)

    peer.send(packets.connect(binary(NULL), version=version))

    turned_away(peer, 0x81, 0x82, 0x85)


@statement("MQTT-1.5.4-2", "MQTT-4.7.3-2")
@statement311("MQTT-1.5.3-2", "MQTT-4.7.3-2")
def test_a_topic_with_a_null_ends_the_connection(join: Join, version: int) -> None:
    peer = join(version)

    peer.send(packets.publish(binary(NULL), version=version))

    broken_off(peer, 0x81, 0x90)


@statement("MQTT-1.5.4-2", "MQTT-4.7.3-2")
@statement311("MQTT-1.5.3-2", "MQTT-4.7.3-2")
def test_a_filter_with_a_null_ends_the_connection(join: Join, version: int) -> None:
    peer = join(version)
    head = short(1) + (b"\0" if version == 5 else b"")

    peer.send(packets.packet(SUBSCRIBE, head + binary(NULL) + b"\0", flags=2))

    broken_off(peer, 0x81, 0x8F)


@statement("MQTT-1.5.4-3")
@statement311("MQTT-1.5.3-3")
def test_a_byte_order_mark_is_a_character(join: Join, version: int, topic: str) -> None:
    peer = join(version)
    marked = f"\ufeff{topic}\ufeff"
    peer.subscribe(marked)

    peer.publish(topic, b"without")
    peer.publish(marked, b"with")

    message = peer.receive()
    assert (message.topic, message.payload) == (marked, b"with")


SIZES = [0, 100, 127, 128, 16_200, 16_383, 16_384, 65_536]


@statement("MQTT-1.5.5-1")
def test_lengths_take_as_few_bytes_as_they_can(join: Join, topic: str) -> None:
    peer = join()
    peer.subscribe(topic)

    for size in SIZES:
        peer.publish(topic, bytes(size))

    assert [len(peer.receive().payload) for _ in SIZES] == SIZES


@statement("MQTT-1.5.5-1")
def test_subscription_identifiers_take_as_few_bytes_as_they_can(
    join: Join, topic: str
) -> None:
    peer = join()
    numbers = [1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455]

    for number in numbers:
        peer.subscribe(f"{topic}/{number}", pairs=[(packets.SUBSCRIPTION_ID, number)])
        peer.publish(f"{topic}/{number}")
        assert peer.receive().all(packets.SUBSCRIPTION_ID) == [number]


@pytest.mark.parametrize(
    "pair",
    [
        binary(CUT) + binary(b"v"),
        binary(b"k") + binary(CUT),
        binary(NULL) + binary(b""),
    ],
    ids=["key", "value", "null"],
)
@statement("MQTT-1.5.7-1")
def test_a_user_property_that_is_not_utf8_ends_the_connection(
    join: Join, topic: str, pair: bytes
) -> None:
    peer = join()

    peer.send(packets.publish(topic, pairs=[(USER_PROPERTY, pair)]))

    broken_off(peer)
