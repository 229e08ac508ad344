from __future__ import annotations

import msgspec
import pytest

from penstock.wire.jsonq.packets import (
    LineRefusal,
    Pub,
    Pubcomp,
    Pubrec,
    Pubrel,
    Sub,
    Unsub,
    encode,
    parse_consumer,
    parse_publisher,
)

CONSUMER = [
    (b'{"type":"SUB","topic":"t"}', Sub("t")),
    (b'{"topic":"t","type":"SUB"}\r', Sub("t")),
    (b' {"type" : "UNSUB", "topic":"t", "more":[1]}', Unsub("t")),
    (b'{"type":"PUBREC","msgId":7,"topic":"t"}', Pubrec(7, "t")),
    (b'{"type":"PUBCOMP","msgId":7,"topic":"t"}', Pubcomp(7, "t")),
]
PUBLISHER = [
    (b'{"type":"PUB","topic":"t","msg":"m"}', Pub("t", msgspec.Raw(b'"m"'))),
    (b'{"type":"PUB","topic":"t","msg":null}', Pub("t", msgspec.Raw(b"null"))),
    (
        '{"msg":{"a" : 1.50, "b":"é"},"type":"PUB","topic":"t"}'.encode(),
        Pub("t", msgspec.Raw('{"a" : 1.50, "b":"é"}'.encode())),
    ),
    (b'{"type":"PUBREL","msgId":3}', Pubrel(3)),
    (b'{"type":"PUBREL","msgId":3,"topic":5}', Pubrel(3)),
]
INVALID = [
    b"",
    b"\r",
    b"log x",
    b"{",
    b'{"type":"SUB","topic":"t"} x',
    b'{"type":"SUB","topic":"t","x":"\xff"}',
    b'{"type":"PUB","topic":"t","msg":"\xff"}',
    b'{"type":"nope","topic":}',
    b'{"type":"PUB","topic":"t","msg":' + b"[" * 100_000,
]
UNKNOWN = [
    b"5",
    b"null",
    b"[]",
    b"{}",
    b'{"type":"sub","topic":"t"}',
    b'{"type":5,"topic":"t"}',
    b'{"topic":"t"}',
    b'{"type":"SUB"}',
    b'{"type":"SUB","topic":5}',
    b'{"type":"SUB","topic":null}',
    b'{"type":"PUBREC","msgId":true,"topic":"t"}',
    b'{"type":"PUBREC","msgId":1.0,"topic":"t"}',
    b'{"type":"PUBREC","msgId":"1","topic":"t"}',
    b'{"type":"PUBREC","msgId":1}',
    b'{"type":"PUB","topic":"t"}',
    b'{"type":"PUB","topic":["t"],"msg":1}',
    b'{"type":"PUBREL","msgId":null}',
]


@pytest.mark.parametrize(("line", "packet"), CONSUMER)
def test_consumer_line_is_its_packet(line: bytes, packet: object) -> None:
    assert parse_consumer(line) == packet
    assert parse_publisher(line) is LineRefusal.UNKNOWN_COMMAND


@pytest.mark.parametrize(("line", "packet"), PUBLISHER)
def test_publisher_line_is_its_packet(line: bytes, packet: object) -> None:
    assert parse_publisher(line) == packet
    assert parse_consumer(line) is LineRefusal.UNKNOWN_COMMAND


@pytest.mark.parametrize("line", INVALID, ids=range(len(INVALID)))
def test_line_that_is_not_json_is_invalid(line: bytes) -> None:
    assert parse_consumer(line) is LineRefusal.INVALID_JSON
    assert parse_publisher(line) is LineRefusal.INVALID_JSON


@pytest.mark.parametrize("line", UNKNOWN)
def test_other_json_is_an_unknown_command(line: bytes) -> None:
    assert parse_consumer(line) is LineRefusal.UNKNOWN_COMMAND
    assert parse_publisher(line) is LineRefusal.UNKNOWN_COMMAND


def test_payload_is_the_text_of_msg() -> None:
    packet = parse_publisher(b'{"type":"PUB","topic":"t","msg": {"a" : 1} }')

    assert isinstance(packet, Pub)
    assert packet.payload == b'{"a" : 1}'


def test_a_packet_is_encoded_as_clients_write_it() -> None:
    assert encode(Pubrec(7, "t")) == b'{"type":"PUBREC","msgId":7,"topic":"t"}\r\n'
