from __future__ import annotations

import pytest

from penstock.wire.mqtt import (
    Acks,
    ClientPacketParser,
    ClientParser,
    Connect,
    Disconnect,
    Malformed,
    PacketKind,
    Pingreq,
    Reason,
    render_acks,
    render_connect,
    render_publish,
    render_publishes,
)
from tests.unit.wire.mqtt.examples import (
    CLIENT,
    LIMIT,
    SERVER,
    connecting,
    golden,
    one_by_one,
    open_client,
    open_parser,
    published,
)

VERSIONS = (3, 4, 5)
PING = b"\xc0\x00"


def reason_of(parser: ClientPacketParser | ClientParser) -> Reason | None:
    return None if parser.failed is None else parser.failed.reason


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_bytes_of_clients_are_their_packets(version: int) -> None:
    parser = ClientPacketParser(LIMIT)

    packets = parser.feed(b"".join(golden(f"client_{version}.hex")))

    assert packets == CLIENT[version]
    assert parser.version == version
    assert parser.failed is None
    assert parser.held_bytes == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_bytes_of_servers_are_their_packets(version: int) -> None:
    parser = ClientParser(LIMIT, version)

    packets = parser.feed(b"".join(golden(f"server_{version}.hex")))

    assert packets == SERVER[version]
    assert parser.failed is None


@pytest.mark.parametrize("version", VERSIONS)
def test_packets_come_byte_by_byte_as_well(version: int) -> None:
    stream = b"".join(golden(f"client_{version}.hex"))
    parser = ClientPacketParser(LIMIT)

    packets = [p for byte in stream for p in parser.feed(bytes((byte,)))]

    assert packets == one_by_one([*CLIENT[version]])


@pytest.mark.parametrize("version", VERSIONS)
def test_every_packet_may_be_cut_in_two(version: int) -> None:
    stream = b"".join(golden(f"server_{version}.hex"))

    for cut in range(len(stream)):
        parser = ClientParser(LIMIT, version)
        packets = parser.feed(stream[:cut]) + parser.feed(stream[cut:])
        assert one_by_one([*packets]) == one_by_one([*SERVER[version]])


# Reason, length of the properties, a reason string: 16384 bytes, the fewest that have a
# length of three bytes.
LONG = b"\0\xfd\x7f\x1f\x3f\xfa" + b"x" * 16378


@pytest.mark.parametrize(
    ("version", "rest", "right"),
    [
        (4, b"\0", True),  # older versions do not say how short it has to be
        (4, b"\1", False),
        (5, b"\0", False),
        (5, b"\1" + LONG, True),
    ],
)
def test_a_length_that_may_become_right_is_waited_for(
    version: int, rest: bytes, *, right: bool
) -> None:
    parser = open_parser(version)

    assert parser.feed(b"\xe0\x80\x80") == []
    assert parser.failed is None
    packets = parser.feed(rest)

    assert [type(one) for one in packets] == [Disconnect] * right
    assert (parser.failed is None) == right


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 9, 40, 700])
@pytest.mark.parametrize(
    "topic", ["t", "a/long/topic/with/more/than/forty/bytes/in/it"]
)
def test_neighbours_of_one_topic_are_one_run(
    version: int, qos: int, count: int, topic: str
) -> None:
    ids = [*range(65536 - count, 65536)] if qos else None
    equal = [b"%05d" % i for i in range(count)]
    varied = [b"x" * (i * 7 % 300) for i in range(count)]
    parser = open_parser(version)

    for payloads in (equal, varied, equal + varied, varied + equal):
        numbers = None if ids is None else ids * (len(payloads) // count)
        run = published(topic, *payloads, qos=qos, packet_ids=numbers)

        assert parser.feed(render_publish(version, run)) == [run]


@pytest.mark.parametrize("version", [4, 5])
def test_a_run_ends_where_the_topic_or_the_flags_change(version: int) -> None:
    runs = [
        published("a", *[b"1"] * 50, qos=1, packet_ids=[*range(1, 51)]),
        published("b", *[b"1"] * 50, qos=1, packet_ids=[*range(1, 51)]),
        published("b", *[b"1"] * 50, qos=1, dup=True, packet_ids=[*range(1, 51)]),
        published("b", *[b"1"] * 50, qos=2, packet_ids=[*range(1, 51)]),
        published("b", *[b"1"] * 50),
        published("b", *[b"1"] * 50, retain=True),
        published("a", *[b"1"] * 50),
    ]
    stream = b"".join(render_publish(version, run) for run in runs)

    assert open_parser(version).feed(stream) == runs


def test_a_run_ends_in_front_of_one_with_properties() -> None:
    plain = render_publishes(b"t", [b"1"] * 20, qos=0, properties=b"\0")
    # As long as its neighbours: the payload is one byte shorter, there are none.
    other = b"\x30\x05\x00\x01t\x01\x31"
    assert len(plain) == 20 * len(other)
    parser = open_parser(5)

    (run,) = parser.feed(plain + other + plain)

    assert run == published("t", *[b"1"] * 20)
    assert reason_of(parser) == Reason.MALFORMED_PACKET


@pytest.mark.parametrize("count", [0, 1, 5, 100])
def test_a_packet_identifier_of_zero_ends_a_run_and_the_stream(count: int) -> None:
    ids = [*range(1, count + 1)]
    stream = render_publishes(
        b"t", [b"x"] * 200, qos=1, packet_ids=[*ids, *[0] * (200 - count)]
    )
    acks = render_acks(PacketKind.PUBACK, [*ids, 0, *range(1, 100)])
    publishing, answering = open_parser(4), open_parser(4)

    runs = publishing.feed(stream)
    answers = answering.feed(acks)

    assert runs == (
        [published("t", *[b"x"] * count, qos=1, packet_ids=ids)] if ids else []
    )
    assert answers == ([Acks(kind=PacketKind.PUBACK, packet_ids=ids)] if ids else [])
    assert reason_of(publishing) == reason_of(answering) == Reason.PROTOCOL_ERROR


@pytest.mark.parametrize(
    "kind",
    [PacketKind.PUBACK, PacketKind.PUBREC, PacketKind.PUBREL, PacketKind.PUBCOMP],
)
@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 40, 5000])
def test_acknowledgements_are_one_run(kind: PacketKind, count: int) -> None:
    run = Acks(kind=kind, packet_ids=[*range(1, count + 1)])

    assert open_parser(4).feed(render_acks(kind, run.packet_ids) + PING) == [
        run,
        Pingreq(),
    ]


def test_acknowledgements_that_say_success_at_length_are_plain() -> None:
    stream = (
        b"\x40\x02\x00\x01" + b"\x40\x03\x00\x02\x00" + b"\x40\x04\x00\x03\x00\x00" * 50
    )

    assert open_parser(5).feed(stream) == [
        Acks(kind=PacketKind.PUBACK, packet_ids=[1, 2, *[3] * 50])
    ]


def test_acknowledgements_that_found_no_subscriber_are_plain() -> None:
    assert open_parser(5).feed(b"\x40\x03\x00\x02\x10") == [
        Acks(kind=PacketKind.PUBACK, packet_ids=[2])
    ]


def test_a_run_of_acknowledgements_ends_in_front_of_a_wrong_one() -> None:
    parser = open_parser(4)

    packets = parser.feed(
        render_acks(PacketKind.PUBACK, [1, 2, 3]) + b"\x40\x03\x00\x04\x00"
    )

    assert packets == [Acks(kind=PacketKind.PUBACK, packet_ids=[1, 2, 3])]
    assert reason_of(parser) == Reason.MALFORMED_PACKET


def test_a_run_of_acknowledgements_ends_in_front_of_a_wrong_length() -> None:
    parser = open_parser(5)

    packets = parser.feed(
        render_acks(PacketKind.PUBACK, [1, 2]) + b"\x40\x82\x00\x00\x03"
    )

    assert packets == [Acks(kind=PacketKind.PUBACK, packet_ids=[1, 2])]
    assert reason_of(parser) == Reason.MALFORMED_PACKET


def test_packets_in_front_of_an_error_are_returned_and_the_next_call_raises_it() -> (
    None
):
    parser = open_parser(4)

    packets = parser.feed(PING + b"\x00")

    assert packets == [Pingreq()]
    assert parser.failed is not None
    with pytest.raises(Malformed) as raised:
        parser.feed(b"")
    assert raised.value is parser.failed


def test_old_clients_may_repeat_a_subscription_as_duplicate() -> None:
    stream = b"\x8a\x06\x00\x01\x00\x01a\x00\x6a\x02\x00\x05"

    assert len(open_parser(3).feed(stream)) == 2
    parser = open_parser(4)
    assert parser.feed(stream) == []
    assert reason_of(parser) == Reason.MALFORMED_PACKET


def test_the_length_of_a_packet_is_checked_before_it_has_come() -> None:
    parser = open_parser(4, limit=1000)
    exact = render_publishes(b"t", [b"x" * (1000 - 6)], qos=0)
    assert len(exact) == 1000

    assert len(parser.feed(exact)) == 1
    parser.feed(b"\x30\xe6\x07")

    assert reason_of(parser) == Reason.PACKET_TOO_LARGE
    assert str(parser.failed) == "mqtt protocol: packet of 1001 bytes exceeds 1000"


def test_a_packet_within_a_run_is_not_too_large_either() -> None:
    parser = open_parser(4, limit=100)
    stream = render_publishes(b"t", [b"x" * 10, b"x" * 95, b"x" * 96], qos=0)

    packets = parser.feed(stream)

    assert packets == [published("t", b"x" * 10, b"x" * 95)]
    assert reason_of(parser) == Reason.PACKET_TOO_LARGE


def test_small_packets_are_limited_as_well() -> None:
    parser = open_parser(4, limit=20)

    parser.feed(render_publishes(b"t", [b"x" * 16], qos=0))

    assert reason_of(parser) == Reason.PACKET_TOO_LARGE


def test_a_long_packet_is_gathered_without_reading_it_again() -> None:
    parser = open_parser(4, limit=1 << 24)
    stream = render_publishes(b"t", [b"x" * 3_000_000], qos=0)

    for at in range(0, len(stream) - 1000, 1000):
        assert parser.feed(stream[at : at + 1000]) == []
        assert parser.held_bytes == at + 1000
    packets = parser.feed(stream[at + 1000 :])

    assert packets == [published("t", b"x" * 3_000_000)]
    assert parser.held_bytes == 0


@pytest.mark.parametrize("length", [b"\xff\xff\xff\xff", b"\x80\x80\x80\x80\x01"])
def test_a_length_has_four_bytes_at_most(length: bytes) -> None:
    parser = open_parser(4)

    parser.feed(b"\x30" + length)

    assert reason_of(parser) == Reason.MALFORMED_PACKET


def test_a_length_longer_than_needed_is_an_error_in_version_5_only() -> None:
    old, new = open_parser(4), open_parser(5)

    assert old.feed(b"\xc0\x80\x00" + PING) == [Pingreq(), Pingreq()]
    assert new.feed(b"\xc0\x80\x00") == []
    assert reason_of(new) == Reason.MALFORMED_PACKET
    padded = b"\x30\x84\x80\x00\x00\x01tx"
    assert old.feed(padded * 3) == [published("t", b"x")] * 3


@pytest.mark.parametrize(
    ("level", "version"), [(0, 4), (1, 4), (6, 5), (127, 5), (0x83, 4), (0x84, 4)]
)
def test_an_unknown_level_says_how_to_answer(level: int, version: int) -> None:
    parser = ClientPacketParser(LIMIT)
    connect = b"\x00\x04MQTT" + bytes((level,)) + b"\x02\x00\x3c\x00\x00"

    assert parser.feed(b"\x10" + bytes((len(connect),)) + connect) == []

    assert reason_of(parser) == Reason.UNSUPPORTED_PROTOCOL_VERSION
    assert parser.version == version


@pytest.mark.parametrize(("name", "level"), [(b"MQIsdp", 4), (b"MQTT", 3)])
def test_a_name_belongs_to_its_level(name: bytes, level: int) -> None:
    parser = ClientPacketParser(LIMIT)
    connect = bytes((0, len(name))) + name + bytes((level,)) + b"\x02\x00\x3c\x00\x00"

    parser.feed(b"\x10" + bytes((len(connect),)) + connect)

    assert reason_of(parser) == Reason.UNSUPPORTED_PROTOCOL_VERSION
    assert parser.version == 4


def test_another_protocol_gets_no_answer() -> None:
    parser = ClientPacketParser(LIMIT)

    parser.feed(b"\x10\x0c\x00\x05HTTP/\x05\x02\x00\x3c\x00")

    assert reason_of(parser) == Reason.UNSUPPORTED_PROTOCOL_VERSION
    assert parser.version == 0
    assert parser.failed is not None
    assert parser.failed.text == "CONNECT has protocol b'HTTP/'"


def test_nothing_comes_before_connect_and_no_second_one() -> None:
    early, late = ClientPacketParser(LIMIT), open_parser(4)

    early.feed(PING)
    late.feed(render_connect(connecting(4)))

    assert reason_of(early) == reason_of(late) == Reason.PROTOCOL_ERROR


def test_nothing_comes_behind_disconnect() -> None:
    parser = open_parser(4)

    assert parser.feed(b"\xe0\x00" + PING) == [Disconnect()]
    assert reason_of(parser) == Reason.PROTOCOL_ERROR


def test_what_follows_connect_in_the_same_read_is_read_by_its_version() -> None:
    stream = render_connect(connecting(5)) + b"\x30\x05\x00\x01t\x00x"

    connect, publishes = ClientPacketParser(LIMIT).feed(stream)

    assert isinstance(connect, Connect)
    assert publishes == published("t", b"x")


# Packets of an open connection: version, bytes, reason, and what is said of it.
WRONG = [
    # flags
    (4, "00 00", Reason.MALFORMED_PACKET, "packet of type 0"),
    (4, "38 03 00 01 61", Reason.MALFORMED_PACKET, "flags 0x8"),  # MQTT-3.3.1-2
    (4, "36 05 00 01 61 00 01", Reason.MALFORMED_PACKET, "flags 0x6"),  # MQTT-3.3.1-4
    (4, "60 02 00 01", Reason.MALFORMED_PACKET, "flags 0x0"),  # MQTT-3.6.1-1
    (4, "80 06 00 01 00 01 61 00", Reason.MALFORMED_PACKET, "flags 0x0"),
    (4, "a0 05 00 01 00 01 61", Reason.MALFORMED_PACKET, "flags 0x0"),
    (4, "c1 00", Reason.MALFORMED_PACKET, "flags 0x1"),
    (4, "e1 00", Reason.MALFORMED_PACKET, "flags 0x1"),  # MQTT-3.14.1-1
    (5, "f1 00", Reason.MALFORMED_PACKET, "flags 0x1"),  # MQTT-3.15.1-1
    # direction
    (4, "20 02 00 00", Reason.PROTOCOL_ERROR, "CONNACK is nothing that a client"),
    (4, "90 03 00 01 00", Reason.PROTOCOL_ERROR, "SUBACK is nothing"),
    (4, "b0 02 00 01", Reason.PROTOCOL_ERROR, "UNSUBACK is nothing"),
    (4, "d0 00", Reason.PROTOCOL_ERROR, "PINGRESP is nothing"),
    (4, "f0 00", Reason.PROTOCOL_ERROR, "AUTH is nothing"),
    # topics
    (4, "30 02 00 00", Reason.PROTOCOL_ERROR, "neither a topic nor an alias"),
    (5, "30 03 00 00 00", Reason.PROTOCOL_ERROR, "neither a topic nor an alias"),
    (4, "30 04 00 02 61 23", Reason.MALFORMED_PACKET, "topic 'a#', which contains #"),
    (4, "30 04 00 02 2b 61", Reason.MALFORMED_PACKET, "contains +"),
    (4, "30 03 00 01 00", Reason.MALFORMED_PACKET, "contains a NUL character"),
    (4, "30 05 00 03 ed a0 80", Reason.MALFORMED_PACKET, "not UTF-8 (byte 0)"),
    (4, "30 04 00 02 c0 80", Reason.MALFORMED_PACKET, "not UTF-8"),
    (4, "30 00", Reason.MALFORMED_PACKET, "an end 2 bytes before"),
    (4, "30 01 00", Reason.MALFORMED_PACKET, "an end 1 bytes before"),
    (4, "30 03 00 02 61", Reason.MALFORMED_PACKET, "an end 1 bytes before"),
    (4, "32 04 00 01 61 00", Reason.MALFORMED_PACKET, "an end 1 bytes before"),
    (5, "32 05 00 01 61 00 01", Reason.MALFORMED_PACKET, "an end 1 bytes before"),
    # packet identifiers
    (4, "32 05 00 01 61 00 00", Reason.PROTOCOL_ERROR, "packet identifier 0"),
    (4, "40 02 00 00", Reason.PROTOCOL_ERROR, "PUBACK has packet identifier 0"),
    (4, "82 06 00 00 00 01 61 00", Reason.PROTOCOL_ERROR, "packet identifier 0"),
    (4, "a2 05 00 00 00 01 61", Reason.PROTOCOL_ERROR, "packet identifier 0"),
    # acknowledgements
    (4, "40 00", Reason.MALFORMED_PACKET, "an end 2 bytes before"),
    (4, "40 03 00 01 00", Reason.MALFORMED_PACKET, "1 bytes behind its end"),
    (5, "40 03 00 01 92", Reason.PROTOCOL_ERROR, "reason 0x92"),
    (5, "62 03 00 01 10", Reason.PROTOCOL_ERROR, "PUBREL has reason 0x10"),
    (5, "40 05 00 01 00 00 00", Reason.MALFORMED_PACKET, "1 bytes behind its end"),
    # SUBSCRIBE and UNSUBSCRIBE
    (4, "82 02 00 01", Reason.PROTOCOL_ERROR, "SUBSCRIBE has no filter"),
    (5, "82 03 00 01 00", Reason.PROTOCOL_ERROR, "SUBSCRIBE has no filter"),
    (4, "82 05 00 01 00 00 00", Reason.MALFORMED_PACKET, "an empty filter"),
    (4, "82 05 00 01 00 01 61", Reason.MALFORMED_PACKET, "an end 1 bytes before"),
    (4, "82 06 00 01 00 01 00 00", Reason.MALFORMED_PACKET, "a NUL character"),
    (4, "82 06 00 01 00 01 ff 00", Reason.MALFORMED_PACKET, "not UTF-8 (byte 0)"),
    (4, "82 06 00 01 00 01 61 03", Reason.PROTOCOL_ERROR, "a filter with QoS 3"),
    (4, "82 06 00 01 00 01 61 04", Reason.MALFORMED_PACKET, "options 0x04"),
    (5, "82 07 00 01 00 00 01 61 40", Reason.MALFORMED_PACKET, "options 0x40"),
    (5, "82 07 00 01 00 00 01 61 30", Reason.PROTOCOL_ERROR, "retain handling 3"),
    (
        5,
        "82 10 00 01 00 00 0a 24 73 68 61 72 65 2f 67 2f 61 04",
        Reason.PROTOCOL_ERROR,
        "a shared subscription with no local",
    ),
    (4, "a2 02 00 01", Reason.PROTOCOL_ERROR, "UNSUBSCRIBE has no filter"),
    (4, "a2 04 00 01 00 00", Reason.MALFORMED_PACKET, "an empty filter"),
    # the rest
    (4, "c0 01 00", Reason.MALFORMED_PACKET, "PINGREQ has 1 bytes behind its end"),
    (4, "e0 01 00", Reason.MALFORMED_PACKET, "DISCONNECT has 1 bytes behind"),
    (5, "e0 01 8b", Reason.PROTOCOL_ERROR, "DISCONNECT has reason 0x8b"),
    (5, "e0 06 00 04 1c 00 01 61", Reason.PROTOCOL_ERROR, "a client does not send"),
    (5, "f0 01 00", Reason.PROTOCOL_ERROR, "AUTH has reason 0x00"),
    # properties
    (5, "30 06 00 01 61 02 0b 01", Reason.PROTOCOL_ERROR, "SUBSCRIPTION_IDENTIFIER"),
    (5, "30 07 00 01 61 03 23 00 00", Reason.TOPIC_ALIAS_INVALID, "TOPIC_ALIAS 0"),
    (5, "30 06 00 01 61 02 17 01", Reason.MALFORMED_PACKET, "which it cannot have"),
    (5, "30 06 00 01 61 02 7f 01", Reason.MALFORMED_PACKET, "property 0x7f"),
    (5, "30 06 00 01 61 02 01 02", Reason.PROTOCOL_ERROR, "must be 0 or 1"),
    (5, "30 08 00 01 61 04 01 00 01 00", Reason.PROTOCOL_ERROR, "INDICATOR twice"),
    (5, "30 08 00 01 61 04 08 00 01 2b", Reason.PROTOCOL_ERROR, "response topic"),
    (5, "30 06 00 01 61 09 01 00", Reason.MALFORMED_PACKET, "an end 7 bytes before"),
    (5, "30 05 00 01 61 80", Reason.MALFORMED_PACKET, "an end 1 bytes before"),
    (5, "30 06 00 01 61 80 00", Reason.MALFORMED_PACKET, "more bytes than it needs"),
    (5, "82 09 00 01 02 0b 00 00 01 61 00", Reason.PROTOCOL_ERROR, "IDENTIFIER 0"),
    (5, "f0 06 18 04 16 00 01 6d", Reason.PROTOCOL_ERROR, "without a method"),
]


@pytest.mark.parametrize(("version", "data", "reason", "text"), WRONG)
def test_what_a_client_must_not_send_is_named(
    version: int, data: str, reason: Reason, text: str
) -> None:
    parser = open_parser(version)

    packets = parser.feed(PING + bytes.fromhex(data) + PING)

    assert packets == [Pingreq()]
    assert parser.failed is not None
    assert (parser.failed.reason, text in parser.failed.text) == (reason, True), (
        parser.failed
    )


# First packets: flags, and what follows the keep alive, in version 4 and 5.
WRONG_CONNECTS = [
    (4, "03", "00 00", Reason.MALFORMED_PACKET, "its reserved flag set"),
    (4, "0a", "00 00", Reason.MALFORMED_PACKET, "flags of a will without one"),
    (4, "22", "00 00", Reason.MALFORMED_PACKET, "flags of a will without one"),
    (4, "1e", "00 00 00 01 61 00 00", Reason.MALFORMED_PACKET, "a will of QoS 3"),
    (4, "42", "00 00 00 01 61", Reason.MALFORMED_PACKET, "without a user name"),
    (4, "06", "00 00 00 00 00 00", Reason.MALFORMED_PACKET, "a will without a topic"),
    (4, "06", "00 00 00 01 23 00 00", Reason.MALFORMED_PACKET, "topic '#'"),
    (4, "02", "", Reason.MALFORMED_PACKET, "an end 2 bytes before"),
    (4, "02", "00 01 00", Reason.MALFORMED_PACKET, "a NUL character"),
    (4, "02", "00 00 00", Reason.MALFORMED_PACKET, "1 bytes behind its end"),
    (4, "82", "00 00 00 01 ff", Reason.MALFORMED_PACKET, "not UTF-8"),
    (5, "02", "03 21 00 00 00 00", Reason.PROTOCOL_ERROR, "RECEIVE_MAXIMUM 0"),
    (5, "02", "05 27 00 00 00 00 00 00", Reason.PROTOCOL_ERROR, "PACKET_SIZE 0"),
    (5, "02", "02 19 02 00 00", Reason.PROTOCOL_ERROR, "must be 0 or 1"),
    (5, "02", "05 18 00 00 00 01 00 00", Reason.MALFORMED_PACKET, "cannot have"),
    (5, "06", "00 00 00 02 19 01", Reason.MALFORMED_PACKET, "cannot have"),
]


@pytest.mark.parametrize(("version", "flags", "rest", "reason", "text"), WRONG_CONNECTS)
def test_what_a_connect_must_not_have_is_named(
    version: int, flags: str, rest: str, reason: Reason, text: str
) -> None:
    body = b"\x00\x04MQTT" + bytes((version,)) + bytes.fromhex(flags + "003c" + rest)
    parser = ClientPacketParser(LIMIT)

    packets = parser.feed(b"\x10" + bytes((len(body),)) + body)

    assert packets == []
    assert parser.version == version
    assert parser.failed is not None
    assert (parser.failed.reason, text in parser.failed.text) == (reason, True), (
        parser.failed
    )


# What servers must not send: version, bytes, reason.
WRONG_SERVERS = [
    (4, "c0 00", Reason.PROTOCOL_ERROR),
    (4, "20 02 00 00", Reason.PROTOCOL_ERROR),
    (4, "e0 00", Reason.PROTOCOL_ERROR),
    (4, "b0 03 00 01 00", Reason.MALFORMED_PACKET),
    (4, "90 03 00 01 03", Reason.PROTOCOL_ERROR),
    (5, "90 04 00 01 00 03", Reason.PROTOCOL_ERROR),
    (5, "b0 04 00 01 00 03", Reason.PROTOCOL_ERROR),
    (5, "e0 01 04", Reason.PROTOCOL_ERROR),
    (5, "e0 07 00 05 11 00 00 00 01", Reason.PROTOCOL_ERROR),  # MQTT-3.14.2-2
    (5, "f0 01 19", Reason.PROTOCOL_ERROR),
    (4, "d0 01 00", Reason.MALFORMED_PACKET),
]


@pytest.mark.parametrize(("version", "data", "reason"), WRONG_SERVERS)
def test_what_a_server_must_not_send_is_refused(
    version: int, data: str, reason: Reason
) -> None:
    parser = open_client(version)

    assert parser.feed(bytes.fromhex(data)) == []
    assert reason_of(parser) == reason


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (4, "20 02 02 00"),
        (4, "20 02 00 06"),
        (5, "20 03 00 01 00"),
        (4, "d0 00"),
        (4, "20 03 00 00 00"),
    ],
)
def test_a_server_begins_with_a_good_connack(version: int, data: str) -> None:
    parser = ClientParser(LIMIT, version)

    assert parser.feed(bytes.fromhex(data)) == []
    assert parser.failed is not None


def test_an_old_return_code_is_the_reason_it_was_sent_for() -> None:
    (refused,) = ClientParser(LIMIT, 4).feed(b"\x20\x02\x00\x05")

    assert refused.reason == Reason.NOT_AUTHORIZED  # type: ignore[union-attr]
