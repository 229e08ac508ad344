from __future__ import annotations

import pytest

from penstock.errors import LocalProtocolError
from penstock.wire.mqtt import (
    NO_PROPERTIES,
    PacketKind,
    Property,
    Reason,
    connack,
    disconnect,
    render_ack,
    render_acks,
    render_publishes,
    suback,
    unsuback,
)
from penstock.wire.mqtt.primitives import binary, varint
from penstock.wire.mqtt.rendering import header
from tests.unit.wire.mqtt.examples import SERVER, golden, rendered_by_server


@pytest.mark.parametrize("version", [3, 4, 5])
def test_packets_of_servers_are_their_golden_bytes(version: int) -> None:
    rendered = [rendered_by_server(version, packet) for packet in SERVER[version]]

    assert rendered == golden(f"server_{version}.hex")


def plain_publishes(
    topic: bytes,
    payloads: list[bytes],
    first: int,
    ids: list[int] | None,
    properties: bytes | None,
) -> bytes:
    """What ``render_publishes`` says, one by one."""
    stream = b""
    for index, payload in enumerate(payloads):
        id = b"" if ids is None else ids[index].to_bytes(2, "big")
        rest = binary(topic) + id + (properties or b"") + payload
        stream += bytes((first,)) + varint(len(rest)) + rest
    return stream


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("properties", [None, NO_PROPERTIES, b"\x02\x01\x01"])
@pytest.mark.parametrize(
    "lengths",
    [[], [0], [5], [5, 5, 5], [0, 0], [1, 2, 3], [120, 121, 122, 123], [16_380, 5]],
    ids=str,
)
def test_publishes_are_what_each_would_be(
    qos: int, properties: bytes | None, lengths: list[int]
) -> None:
    payloads = [b"x" * length for length in lengths]
    ids = [*range(65536 - len(payloads), 65536)] if qos else None

    rendered = render_publishes(
        b"a/b", payloads, qos=qos, packet_ids=ids, properties=properties
    )

    first = 0x30 | qos << 1
    assert rendered == plain_publishes(b"a/b", payloads, first, ids, properties)


def test_flags_are_in_the_first_byte() -> None:
    (first, *_) = render_publishes(b"t", [b""], qos=2, retain=True, packet_ids=[1])
    (other, *_) = render_publishes(b"t", [b""], qos=1, dup=True, packet_ids=[1])

    assert (first, other) == (0x35, 0x3A)


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 1000])
@pytest.mark.parametrize(
    ("kind", "head"),
    [
        (PacketKind.PUBACK, "4002"),
        (PacketKind.PUBREC, "5002"),
        (PacketKind.PUBREL, "6202"),
        (PacketKind.PUBCOMP, "7002"),
    ],
)
def test_acknowledgements_are_four_bytes_each(
    count: int, kind: PacketKind, head: str
) -> None:
    ids = [i * 61 % 65535 + 1 for i in range(count)]

    expected = b"".join(bytes.fromhex(head) + id.to_bytes(2, "big") for id in ids)

    assert render_acks(kind, ids) == expected


def test_no_acknowledgements_are_no_bytes() -> None:
    assert render_acks(PacketKind.PUBACK, []) == b""


def test_an_acknowledgement_says_what_its_version_can_say() -> None:
    properties = {Property.REASON_STRING: "n"}

    assert render_ack(PacketKind.PUBACK, 7, 0x87, {}, 4).hex() == "40020007"
    assert render_ack(PacketKind.PUBACK, 7, 0x87, {}, 5).hex() == "4003000787"
    assert render_ack(PacketKind.PUBACK, 7, 0, {}, 5).hex() == "40020007"
    assert (
        render_ack(PacketKind.PUBREL, 7, 0, {**properties}, 5).hex()
        == "6208000700041f00016e"
    )


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.SUCCESS, 0),
        (Reason.UNSUPPORTED_PROTOCOL_VERSION, 1),
        (Reason.CLIENT_IDENTIFIER_NOT_VALID, 2),
        (Reason.SERVER_BUSY, 3),
        (Reason.BAD_USER_NAME_OR_PASSWORD, 4),
        (Reason.NOT_AUTHORIZED, 5),
        (Reason.TOPIC_NAME_INVALID, 5),
    ],
)
def test_old_clients_get_old_return_codes(reason: Reason, code: int) -> None:
    assert connack(4, reason, False, {}) == bytes((0x20, 2, 0, code))


def test_a_session_is_present_only_if_the_connection_is_accepted() -> None:
    assert connack(4, 0, True, {}).hex() == "20020100"
    assert connack(4, Reason.NOT_AUTHORIZED, True, {}).hex() == "20020005"
    assert connack(5, Reason.NOT_AUTHORIZED, True, {}).hex() == "2003008700"
    assert connack(3, 0, True, {}).hex() == "20020000"


def test_old_clients_get_one_failure_for_all() -> None:
    assert suback(4, 7, [0, 1, 2, 0x87, 0x80], {}).hex() == "90070007" + "0001028080"
    assert suback(5, 7, [0, 0x87], {}).hex() == "90050007" + "000087"
    assert unsuback(4, 7, [0, 0x11], {}).hex() == "b0020007"
    assert unsuback(5, 7, [0, 0x11], {}).hex() == "b0050007" + "000011"


def test_a_disconnect_says_no_more_than_it_must() -> None:
    assert disconnect(0, {}).hex() == "e000"
    assert disconnect(0x8E, {}).hex() == "e0018e"
    assert disconnect(0, {Property.REASON_STRING: "n"}).hex() == "e00600041f00016e"


@pytest.mark.parametrize("length", [0, 127, 128, 16_383, 16_384, 268_435_455])
def test_a_header_is_a_byte_and_a_length(length: int) -> None:
    assert header(0x30, length) == b"\x30" + varint(length)


def test_a_packet_that_is_too_long_is_our_fault() -> None:
    with pytest.raises(LocalProtocolError, match="exceeds 268435455"):
        header(0x30, 268_435_456)
    with pytest.raises(LocalProtocolError, match="field of 65536 bytes"):
        render_publishes(b"t" * 65_536, [b""], qos=0)
