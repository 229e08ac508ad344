"""Packets of every kind, whose bytes are in tests/data/mqtt, and how to render them."""

from __future__ import annotations

from pathlib import Path

from penstock.wire.mqtt import (
    PINGREQ,
    PINGRESP,
    Ack,
    Acks,
    Auth,
    ClientPacket,
    ClientPacketParser,
    ClientParser,
    Connack,
    Connect,
    Disconnect,
    Packet,
    PacketKind,
    Pingreq,
    Pingresp,
    Property,
    Publishes,
    Reason,
    RequestedFilter,
    ServerPacket,
    Suback,
    SubscribePacket,
    Unsuback,
    UnsubscribePacket,
    WillPacket,
    auth,
    connack,
    disconnect,
    render_answer,
    render_connect,
    render_disconnect,
    render_publish,
    render_subscribe,
    render_unsubscribe,
    suback,
    unsuback,
)

DATA = Path(__file__).resolve().parents[3] / "data" / "mqtt"
LIMIT = 1 << 20


def published(topic: str, *payloads: bytes, **fields: object) -> Publishes:
    given = {"qos": 0, "retain": False, "dup": False, "packet_ids": None, **fields}
    return Publishes(topic=topic, payloads=[*payloads], **given)  # type: ignore[arg-type]


def connecting(version: int, **fields: object) -> Connect:
    given = {"client_id": "c", "clean_start": True, "keep_alive": 60, **fields}
    return Connect(version=version, **given)  # type: ignore[arg-type]


_OLD_CLIENT: list[ClientPacket] = [
    published("a/b", b"hello"),
    published("a/b", b"1", b"two", qos=1, packet_ids=[1, 2]),
    published("é", b"", qos=2, dup=True, retain=True, packet_ids=[65535]),
    Acks(kind=PacketKind.PUBACK, packet_ids=[1, 258]),
    Acks(kind=PacketKind.PUBREC, packet_ids=[3]),
    Acks(kind=PacketKind.PUBREL, packet_ids=[4]),
    Acks(kind=PacketKind.PUBCOMP, packet_ids=[5]),
    SubscribePacket(
        packet_id=10, filters=[RequestedFilter("a/+", 0), RequestedFilter("#", 2)]
    ),
    UnsubscribePacket(packet_id=11, filters=["a/+", "#"]),
    Pingreq(),
    Disconnect(),
]
CLIENT: dict[int, list[ClientPacket]] = {
    3: [connecting(3), *_OLD_CLIENT],
    4: [
        connecting(
            4,
            clean_start=False,
            user="bob",
            password=b"\x00\xff",
            will=WillPacket(topic="w", payload=b"gone", qos=2, retain=True),
        ),
        *_OLD_CLIENT,
    ],
    5: [
        connecting(
            5,
            client_id="",
            password=b"pw",
            will=WillPacket(
                topic="w",
                payload=b"",
                qos=1,
                properties={
                    Property.WILL_DELAY_INTERVAL: 5,
                    Property.CONTENT_TYPE: "text/plain",
                },
            ),
            properties={
                Property.SESSION_EXPIRY_INTERVAL: 0xFFFFFFFF,
                Property.RECEIVE_MAXIMUM: 10,
                Property.MAXIMUM_PACKET_SIZE: 1000,
                Property.TOPIC_ALIAS_MAXIMUM: 7,
                Property.REQUEST_RESPONSE_INFORMATION: 1,
                Property.REQUEST_PROBLEM_INFORMATION: 0,
                Property.AUTHENTICATION_METHOD: "m",
                Property.AUTHENTICATION_DATA: b"\x01",
                Property.USER_PROPERTY: [("a", "1"), ("a", "2")],
            },
        ),
        published("a/b", b"1", b"two"),
        published("a/b", b"1", b"two", qos=1, packet_ids=[1, 2]),
        published(
            "a",
            b"x",
            qos=2,
            packet_ids=[3],
            properties={
                Property.PAYLOAD_FORMAT_INDICATOR: 1,
                Property.MESSAGE_EXPIRY_INTERVAL: 60,
                Property.TOPIC_ALIAS: 1,
                Property.RESPONSE_TOPIC: "r",
                Property.CORRELATION_DATA: b"\x00\x01",
                Property.CONTENT_TYPE: "t",
                Property.USER_PROPERTY: [("k", "v")],
            },
        ),
        published("", b"x", properties={Property.TOPIC_ALIAS: 1}),
        Acks(kind=PacketKind.PUBACK, packet_ids=[1, 258]),
        Ack(kind=PacketKind.PUBREC, packet_id=3, reason=Reason.QUOTA_EXCEEDED),
        Ack(
            kind=PacketKind.PUBREL,
            packet_id=4,
            reason=Reason.PACKET_IDENTIFIER_NOT_FOUND,
            properties={Property.REASON_STRING: "no"},
        ),
        SubscribePacket(
            packet_id=10,
            filters=[
                RequestedFilter("a/+", 1, True, True, 2),
                RequestedFilter("$share/g/#", 0),
            ],
            properties={Property.SUBSCRIPTION_IDENTIFIER: 268_435_455},
        ),
        UnsubscribePacket(
            packet_id=11,
            filters=["#"],
            properties={Property.USER_PROPERTY: [("k", "v")]},
        ),
        Auth(
            reason=Reason.REAUTHENTICATE,
            properties={Property.AUTHENTICATION_METHOD: "m"},
        ),
        Pingreq(),
        Disconnect(
            reason=Reason.DISCONNECT_WITH_WILL,
            properties={Property.SESSION_EXPIRY_INTERVAL: 9},
        ),
    ],
}
_OLD_SERVER: list[ServerPacket] = [
    published("a/b", b"hello", retain=True),
    published("a/b", b"1", b"two", qos=2, packet_ids=[1, 2]),
    Acks(kind=PacketKind.PUBACK, packet_ids=[1, 258]),
    Suback(packet_id=10, reasons=[0, 1, 2, 0x80]),
    Unsuback(packet_id=11, reasons=[]),
    Pingresp(),
]
SERVER: dict[int, list[ServerPacket]] = {
    3: [Connack(session_present=False, reason=0), *_OLD_SERVER],
    4: [Connack(session_present=True, reason=0), *_OLD_SERVER],
    5: [
        Auth(
            reason=Reason.CONTINUE_AUTHENTICATION,
            properties={Property.AUTHENTICATION_METHOD: "m"},
        ),
        Connack(
            session_present=True,
            reason=0,
            properties={
                Property.ASSIGNED_CLIENT_IDENTIFIER: "x",
                Property.SERVER_KEEP_ALIVE: 30,
                Property.MAXIMUM_QOS: 1,
                Property.RETAIN_AVAILABLE: 0,
                Property.WILDCARD_SUBSCRIPTION_AVAILABLE: 1,
                Property.SUBSCRIPTION_IDENTIFIER_AVAILABLE: 1,
                Property.SHARED_SUBSCRIPTION_AVAILABLE: 1,
                Property.RESPONSE_INFORMATION: "r",
                Property.SERVER_REFERENCE: "s",
            },
        ),
        published("a/b", b"1", b"two", qos=1, packet_ids=[1, 2]),
        published(
            "a", b"x", properties={Property.SUBSCRIPTION_IDENTIFIER: [1, 200_000]}
        ),
        Ack(kind=PacketKind.PUBACK, packet_id=1, reason=Reason.NOT_AUTHORIZED),
        Acks(kind=PacketKind.PUBCOMP, packet_ids=[2]),
        Suback(
            packet_id=10,
            reasons=[0, 2, 0x8F],
            properties={Property.REASON_STRING: "no"},
        ),
        Unsuback(packet_id=11, reasons=[0, 0x11]),
        Pingresp(),
        Disconnect(reason=Reason.SESSION_TAKEN_OVER),
    ],
}


def rendered_by_client(version: int, packet: ClientPacket) -> bytes:
    match packet:
        case Connect():
            return render_connect(packet)
        case SubscribePacket():
            return render_subscribe(version, packet)
        case UnsubscribePacket():
            return render_unsubscribe(version, packet)
        case Pingreq():
            return PINGREQ
        case Disconnect():
            return render_disconnect(version, packet.reason, packet.properties)
        case Auth():
            return auth(packet.reason, packet.properties)
        case Publishes():
            return render_publish(version, packet)
    return render_answer(version, packet)


def rendered_by_server(version: int, packet: ServerPacket) -> bytes:
    match packet:
        case Connack(reason=reason):
            present = packet.session_present
            return connack(version, reason, present, packet.properties)
        case Suback():
            return suback(version, packet.packet_id, packet.reasons, packet.properties)
        case Unsuback():
            return unsuback(
                version, packet.packet_id, packet.reasons, packet.properties
            )
        case Pingresp():
            return PINGRESP
        case Disconnect():
            return disconnect(packet.reason, packet.properties)
        case Auth():
            return auth(packet.reason, packet.properties)
        case Publishes():
            return render_publish(version, packet)
    return render_answer(version, packet)


def open_parser(version: int, limit: int = LIMIT) -> ClientPacketParser:
    """A parser that has seen a CONNECT."""
    parser = ClientPacketParser(limit)
    parser.feed(render_connect(connecting(version)))
    assert parser.failed is None
    return parser


def open_client(version: int, limit: int = LIMIT) -> ClientParser:
    """A parser that has seen a CONNACK."""
    parser = ClientParser(limit, version)
    parser.feed(connack(version, 0, False, {}))
    assert parser.failed is None
    return parser


def one_by_one(packets: list[Packet]) -> list[Packet]:
    """The packets without runs: how they were grouped depends on how they came."""
    single: list[Packet] = []
    for packet in packets:
        match packet:
            case Publishes(packet_ids=ids):
                single += (
                    published(
                        packet.topic,
                        payload,
                        qos=packet.qos,
                        retain=packet.retain,
                        dup=packet.dup,
                        packet_ids=None if ids is None else [ids[index]],
                        properties=packet.properties,
                    )
                    for index, payload in enumerate(packet.payloads)
                )
            case Acks(kind=kind, packet_ids=ids):
                single += (Acks(kind=kind, packet_ids=[id]) for id in ids)
            case _:
                single.append(packet)
    return single


def golden(name: str) -> list[bytes]:
    lines = (DATA / name).read_text().splitlines()
    return [bytes.fromhex(line) for line in lines if not line.startswith("#")]
