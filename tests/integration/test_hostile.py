"""What pages in a browser and strangers can do to a server as it is by default."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.gateway.gateway import WRONG_LINES
from tests.command import command
from tests.serving import Serving, serving
from tests.wire_client import PATIENCE_S, Wire

pytestmark = pytest.mark.slow

# What fetch(…, {method: "POST", mode: "no-cors", body: …}) sends, with lines that mean
# something to each of the protocols.
BODY = (
    b'x\npub stolen {"id":"1"}\nlog mallory\n{"type":"SUB","topic":"stolen"}\n'
    b'{"type":"PUB","topic":"stolen","msg":"x"}\n1|B\ntwitter\n'
)
FETCH = (
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
)
LINES = ("line", "consumer", "publisher", "maze_event", "maze_client", "control")


def test_pages_cannot_publish_through_ports_that_speak_lines(tmp_path: Path) -> None:
    config = tmp_path / "penstock.toml"
    config.write_text("[listen]\ncontrol_port = 0\n")
    with serving(tmp_path, "--config", str(config)) as server:
        topics = topics_of(server)
        for name in LINES:
            with Wire(server.ports[name]) as wire:
                wire.sock.sendall(FETCH)
                said = rest(wire)
            assert b"HTTP/1.1 400 Bad Request\r\n" in said, name
            assert f"HTTP is at port {server.ports['http']}".encode() in said

        assert topics_of(server) == topics
        found = command(server, "dead-letters", "list", "--json")
        assert found.returncode == 0, found.stderr
        assert json.loads(found.stdout) == []
        # Nobody was kept out by it: the maze has one source at a time.
        with Wire(server.ports["maze_event"]) as source:
            source.say("1|B")
        until_topic_has(server, "maze", 1)


@pytest.mark.parametrize("name", ["line", "publisher", "control"])
def test_a_flood_of_nonsense_earns_a_thousand_answers_and_the_end(
    tmp_path: Path, name: str
) -> None:
    config = tmp_path / "penstock.toml"
    config.write_text("[listen]\ncontrol_port = 0\n")
    with serving(tmp_path, "--config", str(config)) as server:
        with Wire(server.ports[name]) as wire:
            wire.sock.sendall(b"\n" * 100_000)
            said = answered(wire)

        assert WRONG_LINES <= said.count(b"\n") <= 2 * WRONG_LINES
        with Wire(server.ports[name]) as wire:  # a person's mistake is only that
            wire.sock.sendall(b"x\n")
            assert wire.sock.recv(4096)


def answered(wire: Wire) -> bytes:
    """All that comes until the server closes, who need not read what is left."""
    got = b""
    with suppress(ConnectionResetError):
        while data := wire.sock.recv(1 << 16):
            got += data
    return got


def rest(wire: Wire) -> bytes:
    """All that comes until the server closes."""
    got = b""
    while data := wire.sock.recv(4096):
        got += data
    return got


def topics_of(server: Serving) -> dict[str, int]:
    found = command(server, "topics", "--json")
    assert found.returncode == 0, found.stderr
    return {one["name"]: one["events"] for one in json.loads(found.stdout)}


def until_topic_has(server: Serving, name: str, count: int) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while topics_of(server)[name] < count:
        assert time.monotonic() < deadline_s
