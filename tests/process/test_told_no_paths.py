"""Answers to clients name no file of the server, whatever its disk does."""

from __future__ import annotations

import json
import resource
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.wire.mqtt import Connect, Publishes, render_connect, render_publish
from tests.http_client import Http
from tests.serving import Serving, serving
from tests.wire_client import Wire

pytestmark = pytest.mark.slow

LIMIT_BYTES = 400_000
LARGE = "x" * 100_000


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Serving]:
    """A server that cannot make its journal any longer, nor begin another file."""
    with serving(tmp_path, "--no-maze") as server:
        limits = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (LIMIT_BYTES, limits[1]))
        with Wire(server.ports["line"]) as writer:
            writer.say("confirm on")
            writer.lines(2)
            while writer.ask(f'pub t {{"msg":"{LARGE}"}}').startswith("published"):
                pass
        yield server


def mqtt(server: Serving) -> bytes:
    """All that a client of version 5 is told, until it is sent away."""
    connect = Connect(version=5, client_id="c", clean_start=True, keep_alive=60)
    packet = Publishes(
        topic="t",
        payloads=[LARGE.encode()],
        qos=1,
        retain=False,
        dup=False,
        packet_ids=[1],
    )
    with socket.create_connection(("127.0.0.1", server.ports["mqtt"]), 30) as sock:
        sock.sendall(render_connect(connect) + render_publish(5, packet))
        return b"".join(iter(lambda: sock.recv(4096), b""))


def answers(server: Serving) -> Iterator[tuple[str, bytes]]:
    http = Http(server)
    event = {"payload": LARGE}
    yield "publish", http.ask("POST", "/v1/topics/t/events", event).body
    many = json.dumps(event).encode() + b"\n"
    headers = {"Content-Type": "application/x-ndjson"}
    yield "lines", http.ask("POST", "/v1/topics/t/events", many, headers).body
    yield "delete", http.ask("DELETE", "/v1/topics/t").body
    yield "health", http.ask("GET", "/healthz").body
    yield "ready", http.ask("GET", "/readyz").body
    native = server.run("publish", "t", LARGE)
    yield "native", native.stderr
    yield "desk", server.run("topics", "delete", "t", "--yes").stderr
    yield "mqtt", mqtt(server)
    with Wire(server.ports["line"]) as line:
        yield "line", line.ask(f'pub t {{"msg":"{LARGE}"}}').encode()
    with Wire(server.ports["publisher"]) as press:
        pub = json.dumps({"type": "PUB", "topic": "t", "msg": LARGE})
        yield "json", press.ask(pub).encode()


def test_no_gateway_tells_a_path_when_the_disk_fails(full: Serving) -> None:
    said = dict(answers(full))

    refused = json.loads(said["publish"])
    assert refused["status"] in (503, 507), refused
    for name, text in said.items():
        for path in (full.data, full.data.parent):
            assert str(path).encode() not in text, (name, text)
        for part in (b".jnl", b".seg", b"journal/", b"topics/"):
            assert part not in text, (name, text)
    # Whoever runs the server is told.
    assert str(full.data) in full.log.read_text()
