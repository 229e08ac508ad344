from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from penstock.errors import LocalProtocolError, RemoteProtocolError
from penstock.wire.native import (
    Answer,
    Ask,
    ChannelMoved,
    ClientMessage,
    Ended,
    Events,
    Fetch,
    Fetched,
    Finish,
    FrameSplitter,
    Hello,
    LargeAsk,
    Prefetch,
    Publish,
    Published,
    Refuse,
    RefusedUnit,
    RequestRefused,
    ServerMessage,
    Settle,
    Stage,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Welcome,
    decode_client,
    decode_server,
    encode,
)
from penstock.wire.native.codec import LARGE_BYTES

DATA = Path(__file__).resolve().parents[3] / "data" / "native"
CLIENT: list[ClientMessage] = [
    Hello("bob", None, "cli"),
    Hello(None, None, "", "pk_x"),
    Publish(1, "t", [b"x"]),
    Publish(
        2,
        "é",
        [b"", b"\xff"],
        ["a", None],
        [b"k", None],
        [0, 255],
        [{"h": "1"}, {}],
        [None, "p"],
        ["d", None],
    ),
    Subscribe(3, "t"),
    Subscribe(4, "t", "bob", 17, "priority", 5, 2.5, 3, True),
    Subscribe(
        4, "t", "bob", "latest", "log", 5, None, 3, False, 1.0, 3.0, 9.0, 0.5, True, 2
    ),
    Settle(0, [1, 2, 3]),
    Refuse(0, 7, "boom"),
    Refuse(0, 7, "boom", "ValueError", "Traceback", 0.5, True),
    Unsubscribe(5, 0),
    Unsubscribe(5, 0, [7, 8]),
    Ask(6, "topics", {"prefix": "a", "limit": 3}),
    Finish(7, 0, [1, 2], [Publish(0, "t", [b"x"])]),
    Stage(8, "q", 3, 1, 9, Publish(0, "t", [b"x"]), 2),
    Fetch(9, "t", 40, 50, 1 << 20),
]
SERVER: list[ServerMessage] = [
    Welcome("1.0"),
    Published(1, 40, ["a"]),
    Published(2, [7, 9], None),
    Subscribed(3, 0, 40),
    Events(0, [40], None, [1700000000000], ["a"], [b"x"]),
    Events(
        1,
        [40, 41],
        [1, 2],
        [5, 6],
        ["a", "b"],
        [b"x", b"y"],
        [0, 3],
        [None, b"k"],
        [{}, {"h": "1"}],
        [None, "p"],
        ["bob", None],
    ),
    Answer(6, {"topics": ["a", None, 2.5, True]}),
    RequestRefused(
        7, "UnknownTopic", "topic t does not exist", "create it", {"topic": "t"}
    ),
    RequestRefused(7, "WriteFailed", "not stored"),
    Ended(0, "the topic was deleted"),
    Fetched(9, [b"\x00frame", b""], 45, 7, 50),
    ChannelMoved(1, 2),
]
# Of calls that share a message, and of handlers that are fast.
CLIENT_UNITS: list[ClientMessage] = [
    Publish(10, "t", [b"x", b"y", b"z"], units=[1, 2]),
    Prefetch(1, 1024),
]
SERVER_UNITS: list[ServerMessage] = [
    Welcome("1.0", 1 << 26),
    Published(10, [4, 5], ["a", "b"], [RefusedUnit(0, "InvalidPayload", "no")]),
    Published(
        10,
        [],
        None,
        [RefusedUnit(0, "UnknownTopic", "no t", "create it", {"topic": "t"})],
    ),
]


def golden(name: str) -> list[bytes]:
    lines = (DATA / name).read_text().splitlines()
    return [bytes.fromhex(line) for line in lines if not line.startswith("#")]


def test_client_messages_are_the_bytes_they_always_were() -> None:
    assert [encode(message) for message in CLIENT + CLIENT_UNITS] == golden(
        "client.hex"
    )


def test_server_messages_are_the_bytes_they_always_were() -> None:
    assert [encode(message) for message in SERVER + SERVER_UNITS] == golden(
        "server.hex"
    )


def test_golden_bytes_are_the_messages() -> None:
    splitter = FrameSplitter(1000)
    client = splitter.feed(b"".join(golden("client.hex")))
    server = splitter.feed(b"".join(golden("server.hex")))

    assert [decode_client(body) for body in client] == CLIENT + CLIENT_UNITS
    assert [decode_server(body) for body in server] == SERVER + SERVER_UNITS


def test_messages_without_the_newer_fields_are_understood() -> None:
    splitter = FrameSplitter(1000)
    bodies = splitter.feed(b"".join(golden("client_before_failures.hex")))

    assert [decode_client(body) for body in bodies] == [
        Subscribe(3, "t"),
        Subscribe(4, "t", "bob", 17, "priority", 5, 2.5, 3, True),
        Refuse(0, 7, "boom"),
        Unsubscribe(5, 0),
    ]

    bodies = splitter.feed(b"".join(golden("client_before_prefetch.hex")))

    assert [decode_client(body) for body in bodies] == [
        Subscribe(
            4, "t", "bob", "latest", "log", 5, None, 3, False, 1.0, 3.0, 9.0, 0.5, True
        )
    ]

    bodies = splitter.feed(b"".join(golden("client_before_tokens.hex")))

    assert [decode_client(body) for body in bodies] == [Hello("bob", None, "cli")]

    bodies = splitter.feed(b"".join(golden("server_before_fields.hex")))

    assert [decode_server(body) for body in bodies] == [
        RequestRefused(7, "UnknownTopic", "topic t does not exist", "create it")
    ]


def test_messages_of_before_there_were_times_mean_what_they_meant() -> None:
    before = FrameSplitter(1 << 20)

    bodies = before.feed(b"".join(golden("client_before_times.hex")))
    assert [decode_client(body) for body in bodies] == CLIENT
    bodies = before.feed(b"".join(golden("server_before_times.hex")))
    # Problems had no fields then either.
    problem = RequestRefused(7, "UnknownTopic", "topic t does not exist", "create it")
    others = [one for one in SERVER if not isinstance(one, RequestRefused)]
    assert [decode_server(body) for body in bodies] == [
        *others[:-3],
        problem,
        *others[-3:],
    ]


def test_messages_of_before_there_were_units_mean_what_they_meant() -> None:
    before = FrameSplitter(1 << 20)

    bodies = before.feed(b"".join(golden("client_before_units.hex")))
    assert [decode_client(body) for body in bodies] == CLIENT
    bodies = before.feed(b"".join(golden("server_before_units.hex")))
    assert [decode_server(body) for body in bodies] == SERVER


@pytest.mark.parametrize("units", [[], [2], [4], [1, 0, 2], [4, -1], [1, 1]])
def test_units_have_all_events_and_each_has_one(units: list[int]) -> None:
    body = encode(Publish(1, "t", [b"x", b"y", b"z"], units=units))[4:]

    with pytest.raises(RemoteProtocolError, match=f"units of {sum(units)} events for"):
        decode_client(body)


@pytest.mark.parametrize("message", [*CLIENT, *SERVER, *CLIENT_UNITS, *SERVER_UNITS])
def test_a_cut_message_is_refused(message: ClientMessage | ServerMessage) -> None:
    body = encode(message)[4:]

    for cut in range(len(body)):
        with pytest.raises(RemoteProtocolError):
            decode_client(body[:cut])
        with pytest.raises(RemoteProtocolError):
            decode_server(body[:cut])


@pytest.mark.parametrize("message", CLIENT)
def test_a_server_does_not_send_what_clients_say(message: object) -> None:
    with pytest.raises(RemoteProtocolError, match="not a server's message: Invalid"):
        decode_server(msgspec.msgpack.encode(message))


@pytest.mark.parametrize("message", SERVER)
def test_a_client_does_not_send_what_servers_say(message: object) -> None:
    with pytest.raises(RemoteProtocolError, match="not a client's message: Invalid"):
        decode_client(msgspec.msgpack.encode(message))


def test_fields_that_a_later_version_adds_are_ignored() -> None:
    later = msgspec.msgpack.encode([6, 5, 0, [], "more"])

    assert decode_client(later) == Unsubscribe(5, 0)


@pytest.mark.parametrize(
    "junk",
    [
        b"",
        b"\xc1",
        b"\x90",
        b"\x80",
        msgspec.msgpack.encode([99]),
        msgspec.msgpack.encode([6, "5", 0]),
        msgspec.msgpack.encode([6, 5]),
        b"\x93\x01\xa1\xff\xc0",
        b"\x94\x07\x01\xa1v\x81\xa1a" + b"\x91" * 100_000 + b"\xc0",
    ],
    ids=range(9),
)
def test_junk_is_the_fault_of_the_peer(junk: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="not a client's message"):
        decode_client(junk)
    with pytest.raises(RemoteProtocolError, match="not a server's message"):
        decode_server(junk)


def test_columns_are_as_long_as_the_payloads() -> None:
    with pytest.raises(RemoteProtocolError) as publish:
        decode_client(encode(Publish(1, "t", [b"x"], keys=[b"a", b"b"]))[4:])
    with pytest.raises(RemoteProtocolError) as events:
        decode_server(encode(Events(1, [0], None, [], ["a"], [b"x"]))[4:])
    inside = Publish(0, "t", [b"x"], priorities=[])
    with pytest.raises(RemoteProtocolError, match="0 priorities for 1 payloads"):
        decode_client(encode(Stage(1, "q", 0, 0, 0, inside))[4:])

    assert publish.value.text == "Publish: 2 keys for 1 payloads"
    assert events.value.text == "Events: 0 timestamps for 1 payloads"


def test_columns_within_a_finish_are_checked_too() -> None:
    good, bad = Publish(0, "t", [b"x"]), Publish(0, "t", [b"x"], ["a", "b"])
    body = encode(Finish(1, 0, [3], [good, bad]))[4:]

    with pytest.raises(RemoteProtocolError, match="ids"):
        decode_client(body)


@pytest.mark.parametrize("value", [object(), 1 << 70, "\ud800"])
def test_what_cannot_be_encoded_is_our_fault(value: object) -> None:
    with pytest.raises(LocalProtocolError, match="native protocol: Answer: "):
        encode(Answer(1, value))


@pytest.mark.parametrize(
    "arguments", [b"\x90", b"\xc0", b"\x81\x01\x01", b"\x81\xa1\xff\0"]
)
def test_arguments_of_a_question_have_names(arguments: bytes) -> None:
    with pytest.raises(RemoteProtocolError, match="not a client's message"):
        decode_client(b"\x94\x07\x01\xa6topics" + arguments)


def test_large_arguments_are_left_to_those_who_know_what_they_are() -> None:
    arguments: dict[str, object] = {"text": "x" * LARGE_BYTES}

    found = decode_client(encode(Ask(1, "v", arguments))[4:])

    assert isinstance(found, LargeAsk)
    assert (found.seq, found.verb) == (1, "v")
    assert msgspec.msgpack.decode(found.arguments) == arguments


def test_large_messages_come_back_as_they_were() -> None:
    many = [b"x" * 100] * 1000
    publish = Publish(1, "t", many, headers=[{"a": "b"}] * 1000)
    sent: list[ClientMessage] = [
        publish,
        Finish(1, 2, [3], [publish]),
        Stage(1, "q", 0, 0, 0, publish),
        Refuse(1, 2, "x" * LARGE_BYTES),
    ]

    for one in sent:
        assert decode_client(encode(one)[4:]) == one
