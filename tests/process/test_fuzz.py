"""Junk at every port, while somebody works: the server serves on and fails nowhere.

The junk is random bytes, pieces of the protocols in wrong places, good lines cut up and
mixed, and mutations of what clients say (tests/properties/fuzzing.py); the same in
every run, more of it with ``HYPOTHESIS_PROFILE=deep``.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from tests.effort import effort
from tests.properties.fuzz_targets import BODIES, MAZE, native_corpus, said_in
from tests.properties.fuzzing import mutated
from tests.serving import Serving, serving
from tests.unit.wire.mqtt.examples import golden
from tests.wire_client import PATIENCE_S, Wire

pytestmark = pytest.mark.slow

SEEDS = range(effort(1, 60))
ATTACKS = 60
ROUNDS = 10
# Far more than a server with a few clients needs, far less than all the junk.
MEMORY = 64 << 20

WORDS: dict[str, list[bytes]] = {
    "http": [
        b"GET /v1/topics HTTP/1.1\r\n",
        b"POST /v1/topics/t/events HTTP/1.1\r\n",
        b"Host: localhost\r\n",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Upgrade: websocket\r\n",
        b"\r\n",
    ],
    "line": [
        b"pub ", b"sub ", b"unsub ", b"ack ", b"as ", b"confirm on", b"window 9",
        b"fuzz ", b'{"id":"1"}', b'{"id":1,"msg":[],"priority":3}', b'{"id":',
        b"pub fuzz {}\n", b"sub fuzz\n", b"as fuzz\n", b"window 100000\n",
        b"unsub fuzz\n", b"confirm on\n", b"confirm off\n",
    ],
    "consumer": [
        b"log fuzz\n", b"log ", b'{"type":"SUB","topic":"fuzz"}\n', b'{"type":"UNSUB",',
        b'"topic":"fuzz"}\n', b'{"type":"PUBREC","msgId":1,"topic":"fuzz"}\n',
        b'{"type":"PUBCOMP","msgId":1,"topic":"fuzz"}\n', b"9" * 400, b"[" * 3000,
        b'{"type":"SUB","topic":"deadLetterChan"}\n', b'{"type":"SUB","topic":""}\n',
    ],
    "publisher": [
        b'{"type":"PUB","topic":"fuzz","msg":1}\n', b'{"type":"PUBREL","msgId":1}\n',
        b'{"type":"PUBREL","msgId":', b"-1}\n", b"1e9}\n", b'{"type":"PUB"}\n',
        b'{"type":"PUB","topic":"deadLetterChan","msg":"x"}\n', b"[" * 3000,
    ],
    "maze_event": [
        b"1|B\n", b"2|F|1|2\n", b"3|S|2\n", b"|", b"99999999999999999999|B\n", b"1|X\n",
        b"5|P|1|2\r\n", b"0|B\n", b"-1|B\n",
    ],
    "maze_client": [b"1\n", b"2\r\n", b"-1\n", b"9" * 5000, b"\n"],
    "mqtt": [
        b"\x10\x10\0\4MQTT\4\2\0\x3c\0\4fuzz", b"\x10\x11\0\4MQTT\5\2\0\x3c\0\0\4fuzz",
        b"\x82\x08\0\1\0\3f/#\2", b"\xa2\x07\0\1\0\3f/#", b"\x30\x08\0\4fuzzhi",
        b"\x32\x0a\0\4fuzz\0\1hi", b"\x35\x0a\0\4fuzz\0\2hi", b"\x62\2\0\2",
        b"\x40\2\0\1", b"\x50\2\0\1", b"\x70\2\0\1", b"\xc0\0", b"\xe0\0", b"\xf0\0",
        b"\x30\xff\xff\xff\x7f",
    ],
    "native": [
        struct.pack("<I", 0), struct.pack("<I", 5), struct.pack("<I", 0xFFFFFFFF),
        struct.pack(">I", 5), b"\x93\x01\xa1t\xc4\x00", b"\x80", b"\xc1", b"\xdf",
        struct.pack("<I", 64 << 20),
    ],
}  # fmt: skip


LINES, JSON = said_in("line"), said_in("jsonq")
CORPUS: dict[str, list[bytes]] = {
    "http": [*BODIES, b"GET /v1/topics HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    "line": LINES,
    "consumer": JSON,
    "publisher": JSON,
    "maze_event": MAZE,
    "maze_client": MAZE,
    "mqtt": [one for version in (3, 4, 5) for one in golden(f"client_{version}.hex")],
    "native": native_corpus("client.hex"),
}


@pytest.mark.parametrize("seed", SEEDS)
def test_junk_at_every_port_harms_nobody(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    config = tmp_path / "penstock.toml"
    config.write_text('[line]\nmax_line_bytes = "64KiB"\n')
    with serving(tmp_path, "--config", str(config)) as server:
        with Worker(server.ports["line"]) as worker:
            worker.work()
            before = memory(server.pid)
            for number in range(ATTACKS):
                attack(server, random)
                if number % (ATTACKS // ROUNDS) == 0:
                    worker.work()
            worker.work()

            grown = memory(server.pid) - before
        assert server.stop() == 0, f"seed {seed}"

    said = server.log.read_text()
    assert "Traceback" not in said, f"seed {seed}: {said}"
    assert "failed" not in said, f"seed {seed}: {said}"
    assert grown < MEMORY, f"seed {seed}"


class Worker:
    """A well-behaved client: publishes with confirmation, consumes, acknowledges."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._count = 0

    def __enter__(self) -> Worker:
        self._writer, self._reader = Wire(self._port), Wire(self._port)
        self._writer.say("confirm on", 'pub work {"id":"first"}')
        assert self._writer.lines(3)[2] == "published work first 0"
        self._reader.say("as worker", "sub work")
        assert self._reader.lines(3)[2] == "successfully subscribed to topic work"
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.sock.close()
        self._reader.sock.close()

    def work(self) -> None:
        """Some events, all the way."""
        for _ in range(5):
            self._count += 1
            number = self._count
            answer = self._writer.ask(f'pub work {{"id":{number},"msg":{number}}}')
            assert answer == f"published work {number} {number}"
            assert self._reader.line() == (
                f'{{"topic":"work","priority":0,"msg":{number},"id":"{number}"}}'
            )
            self._reader.say(f"ack work {number}")
            assert self._reader.lines(2) == [
                "acknowledged from current session",
                "no available message",
            ]


def attack(server: Serving, random: Random) -> None:
    """One connection with junk. It reads everything, nothing, or leaves rudely."""
    name = random.choice(list(server.ports))
    data = junk(random, WORDS[name])
    if random.random() < 0.5:
        begin = CORPUS[name][0]  # a login, often: then the rest is looked at
        data = begin + b"".join(mutated(random, CORPUS[name]) for _ in range(20))
    with Wire(server.ports[name]) as wire, suppress(ConnectionError):
        manner = random.choice(["polite", "silent", "rude"])
        wire.sock.settimeout(PATIENCE_S if manner == "polite" else 0.05)
        with suppress(TimeoutError):
            for piece in pieces(random, data):
                wire.sock.sendall(piece)
        if manner == "polite":
            with suppress(OSError):  # it may have been closed already
                wire.sock.shutdown(socket.SHUT_WR)
            wire.rest()
        elif manner == "rude":
            linger = struct.pack("ii", 1, 0)
            wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)


def junk(random: Random, words: list[bytes]) -> bytes:
    parts = []
    for _ in range(random.randrange(1, 60)):
        match random.randrange(6):
            case 0:
                parts.append(random.randbytes(random.choice([1, 10, 1000])))
            case 1:
                parts.append(random.choice([b"\n", b"\r\n", b"\0", b"\xff", b" "]))
            case 2:
                word = random.choice(words)
                parts.append(word[: random.randrange(len(word) + 1)])
            case _:
                parts.append(random.choice(words))
    if random.randrange(8) == 0:
        parts.append(b"x" * 200_000)
    return b"".join(parts)


def pieces(random: Random, data: bytes) -> list[bytes]:
    size = random.choice([1 << 20, 1 << 20, 1000, 37])
    return [data[at : at + size] for at in range(0, len(data), size)]


def memory(pid: int) -> int:
    """What a process has in memory now, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmRSS")
