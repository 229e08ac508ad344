"""Small things by the million, in one message: they cost about what they weigh.

Each of them is short on the wire and many times larger in memory. Those who send them
have logged in, and may do nothing or little.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.server.users_file import set_password
from penstock.wire.mqtt import (
    MAX_REPEATED,
    ClientParser,
    Connack,
    Connect,
    Reason,
    render_connect,
)
from penstock.wire.native import (
    Answer,
    Ask,
    FrameSplitter,
    Hello,
    RequestRefused,
    ServerMessage,
    Welcome,
    decode_server,
    encode,
)
from penstock.wire.native.frames import frame
from tests.serving import Serving, serving
from tests.wire_client import PATIENCE_S, Wire

pytestmark = pytest.mark.slow

MIB = 1 << 20
# Bodies are up to 16 MiB, and there are a few copies of one at a time.
MOST_MIB = 80
RULES = """zero may nothing
narrow may publish n/#
narrow may subscribe n/# as narrow
narrow may read n/#
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("bulk")
    users = folder / "users"
    for name in ("zero", "narrow"):
        set_password(users, name, "secret")
    with users.open("a") as file:
        file.write(RULES)
    with serving(folder, "--users-file", str(users), "--no-maze") as server:
        yield server
        assert "Traceback" not in server.log.read_text()


@contextmanager
def costing_little(server: Serving) -> Iterator[None]:
    began = memory(server, "VmRSS")
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # forget the peak
    yield
    cost = memory(server, "VmHWM") - began
    assert cost <= MOST_MIB, f"{cost} MiB"


def memory(server: Serving, what: str) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(rf"{what}:\s*(\d+) kB", status)
    assert found is not None
    return int(found[1]) >> 10


# HTTP


def ask(
    server: Serving, method: str, path: str, body: bytes = b"", kind: str = "json"
) -> tuple[int, bytes]:
    """Status and body of an answer to the user with few rights."""
    port = server.ports["http"]
    login = base64.b64encode(b"narrow:secret").decode()
    headers = {"Authorization": f"Basic {login}", "Content-Type": f"application/{kind}"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def published(server: Serving, topic: str, payload: bytes) -> str:
    """The path of the topic's events."""
    path = f"/v1/topics/n%2F{topic}/events"
    status, body = ask(server, "POST", path, payload, "octet-stream")
    assert status == 201, body
    return path


def found(server: Serving, path: str, search: str) -> int:
    status, body = ask(server, "GET", f"{path}?search={search}")
    assert status == 200, body
    return len(json.loads(body)["events"])


def test_a_search_takes_no_large_payload_apart(server: Serving) -> None:
    path = published(server, "lists", b'[{"a":1},' + b"[]," * (5 * MIB) + b"1]")

    with costing_little(server):
        assert found(server, path, "a%3D1") == 0

    assert found(server, path, "%22a%22") == 1


def test_a_search_takes_a_payload_apart_that_is_not_large(server: Serving) -> None:
    path = published(server, "few", b'[{"a":1},' + b"[]," * 10_000 + b"1]")

    assert found(server, path, "a%3D1") == 1


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("topics/n%2Fx/schema/check", b'{"schema":[%b[]]}' % (b"[]," * 5 * MIB), 413),
        ("topics/n%2Fx/schema/check", b'{"schema":[%b[]]}' % (b"[]," * 300_000), 403),
        (
            "subscriptions/narrow/n%2Fx/pull",
            b'{"max":"x","ack":[%b[]]}' % (b"[]," * 5 * MIB),
            413,
        ),
        (
            "subscriptions/narrow/n%2Fx/pull",
            b'{"max":"x","ack":[%b[]]}' % (b"[]," * MIB),
            422,
        ),
        ("topics/n%2Fx/events", b"[%b{}]" % (b"{}," * 5 * MIB), 422),
        ("subscriptions/other/n%2Fx/pull", b'{"ack":[%b0]}' % (b"[]," * MIB), 403),
    ],
    ids=["schema", "less of it", "acks", "fewer acks", "events", "of somebody else"],
)
def test_bodies_are_not_taken_apart_in_vain(
    server: Serving, path: str, body: bytes, status: int
) -> None:
    with costing_little(server):
        assert ask(server, "POST", f"/v1/{path}", body)[0] == status


# MQTT


def test_a_packet_with_a_million_user_properties_ends_its_connection(
    server: Serving,
) -> None:
    properties = b"\x26\0\0\0\0" * MIB

    with costing_little(server):
        said = mqtt_answer(server, properties)

    assert said == Reason.QUOTA_EXCEEDED


def test_a_packet_may_have_a_thousand_user_properties(server: Serving) -> None:
    properties = b"\x26\0\x01a\0\0" * MAX_REPEATED

    assert mqtt_answer(server, properties) == Reason.NOT_AUTHORIZED


def mqtt_answer(server: Serving, properties: bytes) -> Reason:
    """What is said to a PUBLISH with these."""
    body = b"\0\x03n/p\0\x01" + varint(len(properties)) + properties + b"x"
    login = Connect(
        version=5,
        client_id="zero",
        clean_start=True,
        keep_alive=60,
        user="zero",
        password=b"secret",
    )
    parser = ClientParser(MIB, 5)
    with Wire(server.ports["mqtt"]) as wire:
        wire.sock.sendall(render_connect(login))
        (welcome,) = parser.feed(wire.sock.recv(4096))
        assert isinstance(welcome, Connack), welcome
        wire.sock.sendall(b"\x32" + varint(len(body)) + body)
        (said,) = parser.feed(wire.sock.recv(4096))
        assert hasattr(said, "reason"), said
        return Reason(said.reason)


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


# Native


def many(count: int, one: bytes) -> bytes:
    """A list in MessagePack."""
    return b"\xdd" + struct.pack(">I", count) + one * count


def distinct(count: int) -> bytes:
    """A map in MessagePack, of names that are all different."""
    names = b"".join(b"\xa6%06x\xa0" % number for number in range(count))
    return b"\xdf" + struct.pack(">I", count) + names


# What is sent, and the error that answers it.
NATIVE = {
    "arguments": (
        b"\x94\x07\x01\xa6topics\x81\xa1a" + many(6 * MIB, b"\x90"),
        "InvalidArgument",
    ),
    "numbers": (
        b"\x94\x07\x01\xacsinks.commit\x81\xa5parts" + many(6 * MIB, b"\x92\1\1"),
        "InvalidArgument",
    ),
    "a schema": (
        b"\x94\x07\x01\xadschemas.check\x82\xa5topic\xa1t\xa6schema"
        + many(6 * MIB, b"\x90"),
        "TooLarge",
    ),
    "a schema of somebody without rights": (
        b"\x94\x07\x01\xadschemas.check\x82\xa5topic\xa1t\xa6schema"
        + many(MIB // 8, b"\x90"),
        "NotAllowed",
    ),
    "headers of nothing": (
        b"\x98\x02\x01\xa1t\x90\xc0\xc0\xc0" + many(3 * MIB, b"\x80"),
        "RemoteProtocolError",
    ),
    "headers": (
        b"\x98\x02\x01\xa1t"
        + many(MIB, b"\xc4\0")
        + b"\xc0\xc0\xc0"
        + many(MIB, b"\x81\xa0\xa0"),
        "RemoteProtocolError",
    ),
    "names of headers": (
        b"\x98\x02\x01\xa1t\x91\xc4\0\xc0\xc0\xc0\x91" + distinct(2 * MIB),
        "RemoteProtocolError",
    ),
    "publishes": (
        b"\x95\x08\x01\x01\x90" + many(2 * MIB, b"\x94\x02\0\xa0\x90"),
        "RemoteProtocolError",
    ),
}


@pytest.mark.parametrize("what", NATIVE)
def test_messages_with_millions_of_values_are_not_taken_apart(
    server: Serving, what: str
) -> None:
    message, error = NATIVE[what]

    with costing_little(server):
        said = native_answer(server, frame(message))

    assert isinstance(said, RequestRefused), said
    assert said.error == error, said


def test_large_questions_that_make_sense_are_answered(server: Serving) -> None:
    letters = [["no JSON", bytes(100)]] * 20_000
    question = Ask(
        1, "sinks.commit", {"query": "q", "epoch": 0, "parts": [], "letters": letters}
    )

    said = native_answer(server, encode(question), "narrow")

    assert isinstance(said, Answer), said


def native_answer(server: Serving, data: bytes, user: str = "zero") -> ServerMessage:
    splitter = FrameSplitter(MIB)
    with Wire(server.ports["native"]) as wire:
        found: list[ServerMessage] = []

        def more(count: int) -> None:
            while len(found) < count:
                came = wire.sock.recv(1 << 16)
                assert came, found
                found.extend(map(decode_server, splitter.feed(came)))

        wire.sock.sendall(encode(Hello(user, "secret", "")))
        more(1)
        assert isinstance(found[0], Welcome), found
        wire.sock.sendall(data)
        more(2)
        return found[1]
