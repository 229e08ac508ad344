"""Questions that come all at once: they are answered one by one, between others.

Each question makes up data for as long as it may. On one connection many of them are
sent in one write; when the first is answered, a neighbour publishes, and is confirmed
before the last is.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from penstock.client import Client, connect
from penstock.wire.native import (
    Answer,
    Ask,
    ClientMessage,
    FrameSplitter,
    Hello,
    RequestRefused,
    decode_server,
    encode,
)
from tests.serving import Serving, serving
from tests.wire_client import PATIENCE_S, Wire

pytestmark = pytest.mark.slow

MANY = 40
LONG = {"type": "array", "minItems": 50, "items": {"type": "integer"}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("questions")
    config = folder / "penstock.toml"
    config.write_text("[broker]\nmax_schema_s = 0.05\n")
    with serving(folder, "--config", str(config), "--no-maze") as server:
        with native(server) as client:
            client.ask("schemas.register", topic="long", schema=LONG)
        yield server
        assert "Traceback" not in server.log.read_text()


def native(server: Serving) -> Client:
    return connect(f"127.0.0.1:{server.ports['native']}")


def arrived(sock: socket.socket) -> bytes:
    """What is there by now."""
    found = b""
    sock.setblocking(False)
    with suppress(BlockingIOError):
        while data := sock.recv(1 << 20):
            found += data
    sock.settimeout(PATIENCE_S)
    return found


def test_many_questions_at_once_keep_nobody_else_waiting(server: Serving) -> None:
    mock: dict[str, object] = {"topic": "long", "count": 100}
    asked = range(1, MANY + 1)
    flood: list[ClientMessage] = [Hello(None, None, "")]
    flood += [Ask(seq, "schemas.mock", mock) for seq in asked]
    splitter = FrameSplitter(1 << 30)
    with native(server) as neighbour, Wire(server.ports["native"]) as wire:
        wire.sock.sendall(b"".join(map(encode, flood)))
        answers: list[int] = []

        def take(data: bytes) -> None:
            found = [decode_server(body) for body in splitter.feed(data)]
            answers.extend(
                one.seq for one in found if isinstance(one, Answer | RequestRefused)
            )

        while not answers:
            take(wire.sock.recv(1 << 20))
        neighbour.publish("t", [b"x"])
        take(arrived(wire.sock))
        early = len(answers)
        while len(answers) < MANY:
            take(wire.sock.recv(1 << 20))

    assert early < MANY
    assert answers == list(asked)


def test_many_requests_at_once_keep_nobody_else_waiting(server: Serving) -> None:
    token = (server.data / "http-admin-token").read_text().strip()
    request = (
        "GET /v1/topics/long/schema/mock?count=100 HTTP/1.1\r\n"
        f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
    )
    begins = b"HTTP/1.1 "
    with native(server) as neighbour, Wire(server.ports["http"]) as wire:
        wire.sock.sendall(request.encode() * MANY)
        found = b""
        while begins not in found:
            found += wire.sock.recv(1 << 20)
        neighbour.publish("t", [b"x"])
        found += arrived(wire.sock)
        early = found.count(begins)
        while found.count(begins) < MANY:
            found += wire.sock.recv(1 << 20)

    assert early < MANY
