"""Names that a terminal would obey: refused at every gateway, escaped where shown."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log import Columns, Log
from penstock.wire.mqtt import (
    Ack,
    Acks,
    ClientParser,
    Connack,
    Connect,
    Publishes,
    Reason,
    ServerPacket,
    render_connect,
    render_publish,
)
from tests.command import command
from tests.http_client import Http
from tests.serving import PENSTOCK, Serving, serving

BELL = "al\x07arm"
CLEAR = "\x1b[2J"
C1 = "\x9b31m"
ALLOWED = {"PENSTOCK_BROKER_CONTROL_CHARACTERS": "true"}


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("strict")) as server:
        yield server


@pytest.fixture(scope="module")
def lenient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ALLOWED.items():
            patch.setenv(name, value)
        with serving(tmp_path_factory.mktemp("lenient")) as server:
            yield server


def topics(server: Serving) -> list[str]:
    done = command(server, "topics", "--json")
    return [one["name"] for one in json.loads(done.stdout)]


def line(server: Serving, topic: str) -> bytes:
    with socket.create_connection(("127.0.0.1", server.ports["line"]), 30) as sock:
        sock.sendall(f'confirm on\npub {topic} {{"id":"1"}}\n'.encode())
        with sock.makefile("rb") as lines:
            return [next(lines) for _ in range(3)][2]


def publisher(server: Serving, topic: str) -> bytes:
    with socket.create_connection(("127.0.0.1", server.ports["publisher"]), 30) as sock:
        packet = {"type": "PUB", "topic": topic, "msg": "x"}
        sock.sendall(json.dumps(packet).encode() + b"\n")
        return sock.recv(4096)


def mqtt(server: Serving, connect: Connect, *sent: bytes) -> list[ServerPacket]:
    """What a client of version 5 is told: one packet for each that it sends."""
    parser = ClientParser(1 << 20, connect.version)
    got: list[ServerPacket] = []
    with socket.create_connection(("127.0.0.1", server.ports["mqtt"]), 30) as sock:
        for data in (render_connect(connect), *sent):
            sock.sendall(data)
            before = len(got)
            while len(got) == before and (data := sock.recv(4096)):
                got += parser.feed(data)
    return got


def client(name: str) -> Connect:
    return Connect(version=5, client_id=name, clean_start=True, keep_alive=60)


def publish_to(topic: str) -> bytes:
    packet = Publishes(
        topic=topic, payloads=[b"x"], qos=1, retain=False, dup=False, packet_ids=[1]
    )
    return render_publish(5, packet)


def test_no_gateway_makes_a_topic_with_control_characters(strict: Serving) -> None:
    name = BELL + C1
    native = command(strict, "publish", name, "x")
    created = command(strict, "topics", "create", name)
    http = Http(strict).ask("POST", "/v1/topics", {"name": name})
    said = line(strict, name)
    json_said = publisher(strict, name)
    publish = publish_to(name)
    acked = mqtt(strict, client("publisher"), publish)[1]

    assert native.returncode == created.returncode == 2
    assert b"control characters" in native.stderr
    assert http.status == 422 or http.status == 400
    assert b"published" not in said
    assert b"PUBREC" not in json_said
    assert isinstance(acked, Ack) and acked.reason == Reason.TOPIC_NAME_INVALID
    assert name not in topics(strict)


def test_an_mqtt_client_has_a_plain_id(strict: Serving) -> None:
    (refused,) = mqtt(strict, client(BELL))
    (welcome,) = mqtt(strict, client("plain"))

    assert isinstance(refused, Connack)
    assert refused.reason == Reason.CLIENT_IDENTIFIER_NOT_VALID
    assert isinstance(welcome, Connack)
    assert welcome.reason == Reason.SUCCESS


def test_a_setting_lets_control_characters_in(lenient: Serving) -> None:
    publish = publish_to(BELL)

    welcome, acked = mqtt(lenient, client(BELL), publish)

    assert isinstance(welcome, Connack) and welcome.reason == Reason.SUCCESS
    assert isinstance(acked, Acks)
    assert BELL in topics(lenient)


def test_a_topic_of_an_earlier_version_is_read_written_and_deleted(
    tmp_path: Path,
) -> None:
    with Log.open(tmp_path / "data") as log:
        log.create_topic(BELL)
        log.append(BELL, Columns([b"before"]))

    with serving(tmp_path, "--no-mqtt", "--no-http") as server:
        published = command(server, "publish", BELL, "after")
        read = command(server, "subscribe", BELL, "--from", "earliest", "--count", "2")
        deleted = command(server, "topics", "delete", BELL, "--yes")

        assert published.returncode == deleted.returncode == 0, deleted.stderr
        assert read.stdout == b"before\nafter\n"
        assert BELL not in topics(server)


def on_terminal(server: Serving, *arguments: str) -> bytes:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [*PENSTOCK, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "PENSTOCK_DATA": str(server.data)},
        ) as process:
            os.close(theirs)
            return b"".join(_read(ours))
    finally:
        os.close(ours)
        assert process.returncode is not None


def _read(terminal: int) -> Iterator[bytes]:
    with contextlib.suppress(OSError):  # EIO: nobody writes any more
        while data := os.read(terminal, 4096):
            yield data


def test_what_reaches_a_terminal_is_escaped(lenient: Serving) -> None:
    name = f"evil{CLEAR}{C1}\u202e"
    payload = f"boo{CLEAR}{C1}\r\u202egpj.exe"
    command(lenient, "publish", name, payload, "--key", CLEAR, "--id", "one")
    command(
        lenient, "subscribe", name, "--as", "me", "--from", "earliest", "--count", "1"
    )
    asked = [
        ("topics",),
        ("topics", "delete", name),  # no terminal to ask at: an error with the name
        ("publish", name, "x", "--json"),
        ("subscribe", name, "--from", "earliest", "--count", "1"),
        ("subscribe", name, "--from", "earliest", "--count", "1", "--json"),
        ("chain", "one"),
        ("flow",),
        ("top", "--once"),
        ("topics", "show", f"no{CLEAR}"),
    ]

    for arguments in asked:
        said = on_terminal(lenient, *arguments)
        assert said, arguments
        text = said.replace(b"\r\n", b"\n").decode()
        for bad in (CLEAR, C1, "\r", "\u202e"):
            assert bad not in text, (arguments, text)


def test_a_pipe_gets_every_byte_of_a_payload(strict: Serving) -> None:
    payload = f"boo{CLEAR}{C1}\r\u202e"
    command(strict, "publish", "piped", payload)

    read = command(strict, "subscribe", "piped", "--from", "earliest", "--count", "1")

    assert read.stdout == payload.encode() + b"\n"
