"""Connections of people nobody knows: however many and bad, they cost little."""

from __future__ import annotations

import base64
import re
import resource
import socket
import ssl
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.server.users_file import set_password
from tests.effort import effort
from tests.interop.certificates import Certificates
from tests.serving import Serving, serving
from tests.wire_client import PATIENCE_S

pytestmark = pytest.mark.slow

HOSTILE = effort(500, 1_000)
# Handshakes take a while; it is more than there are places for.
BEHIND_TLS = 420
MOST_MIB = 64
# What may be left when all have gone: pages that allocators keep.
LEFT_MIB = 24
# Of the loop, until all that came was read.
TURNS = 8
# That the system of a peer takes, as far as it can be told so.
RECEIVED_BYTES = 4096
GREETING = "Successfully connected to message_broker"

# Short, so that all of a crowd have their turn soon.
CONFIG = """
[server]
users_file = "{users}"
max_connections_per_address = 0
stranger_s = 0.3
[tls]
cert_file = "{cert}"
key_file = "{key}"
plain = "{plain}"
"""
PLAIN = "line,consumer,publisher,native,http"

UPGRADE = (
    "GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}\r\n"
    "Sec-WebSocket-Protocol: mqtt\r\n"
    "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
).encode()


def frame(
    payload: bytes, *, opcode: int = 2, first: int = 0x80, claim: int = 0
) -> bytes:
    """A masked frame (with zeros, so the payload is as it is)."""
    length = claim or len(payload)
    head = bytes([first | opcode, 0x80 | 127]) + struct.pack("!Q", length)
    if length < 126:
        head = bytes([first | opcode, 0x80 | length])
    return head + bytes(4) + payload


def bomb(size: int) -> bytes:
    """A compressed frame that unfolds to so many zeros."""
    packer = zlib.compressobj(wbits=-12)
    data = packer.compress(bytes(size)) + packer.flush(zlib.Z_SYNC_FLUSH)
    return frame(data[:-4], first=0xC0)


def mqtt(claim: int, body: bytes) -> bytes:
    """A CONNECT that says how long it is."""
    length = bytearray()
    while claim >= 0x80:
        length.append(claim & 0x7F | 0x80)
        claim >>= 7
    return b"\x10" + bytes(length) + bytes([claim]) + body


def hello(length: int) -> bytes:
    """The beginning of a TLS handshake that says how long it is."""
    return b"\x16\x03\x01\x40\x00\x01" + length.to_bytes(3, "big") + bytes(1000)


class Attack(NamedTuple):
    """What somebody does at a port."""

    port: str
    data: bytes
    first: bytes = b""
    """Said and answered before."""


CONNECT = (
    b"\x00\x04MQTT\x04\x82\x00\x3c\x00\x01a"
    + (16_000).to_bytes(2, "big")
    + b"u" * 15_000
)
HELLO = (16_384).to_bytes(4, "little") + bytes(16_000)
HEADERS = b"GET / HTTP/1.1\r\nX: " + b"x" * 30_000
# The largest answer that anybody may have.
PUBLIC = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
BODY = (
    b"POST /v1/session HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/json\r\nContent-Length: 16000\r\n\r\n"
) + b"x" * 15_000

# Those that begin with half of something are left alone for a while. The dearest come
# first, while nothing of the others is left in the allocators.
BEFORE_TLS = {
    "no handshake": Attack("mqtts", b""),
    "half a handshake": Attack("mqtts", hello(16_000)),
    "a large handshake": Attack("mqtts", hello(131_000)),
}
INSIDE_TLS = {
    "an answer that is not read": Attack("http", PUBLIC),
    "half a body behind an answer that is not read": Attack("http", PUBLIC + BODY),
    "half headers": Attack("http", HEADERS),
    "half headers, later": Attack(
        "http", HEADERS, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    ),
    "half a message": Attack("http", frame(bytes(16_000), claim=1 << 20), UPGRADE),
    "half a line": Attack("line", b"as " + b"x" * 16_000),
    "half a hello": Attack("native", HELLO),
    "half a CONNECT": Attack("mqtts", mqtt(16_015, CONNECT)),
}
IN_CLEAR = {
    "blank lines": Attack("line", b"\n" * 100_000),
    "a line without an end": Attack("line", b"as " + b"x" * 200_000),
    "half a line": Attack("line", b"as " + b"x" * 16_000),
    "a consumer without an end": Attack("consumer", b"x" * 200_000),
    "a publisher of blank lines": Attack("publisher", b"\n" * 100_000),
    "a long maze client": Attack("maze_client", b"1" * 16_000),
    "half a hello": Attack("native", HELLO),
    "half a CONNECT": Attack("mqtt", mqtt(16_015, CONNECT)),
    "a large CONNECT": Attack("mqtt", mqtt(16_000_000, CONNECT + bytes(200_000))),
    "half headers": Attack("http", HEADERS),
    "a body without an end": Attack(
        "http",
        b"POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n" + bytes(100_000),
    ),
    "half a message": Attack("http", frame(bytes(16_000), claim=1 << 20), UPGRADE),
    "half a body": Attack("http", BODY),
    "many answers that are not read": Attack("http", PUBLIC * 100),
    "a bomb": Attack("http", bomb(15 << 20) * 4, UPGRADE),
    "pings": Attack("http", frame(b"x" * 125, opcode=9) * 100, UPGRADE),
    "silence": Attack("line", b""),
}


class Scene:
    """A server, and the way to its ports: over TLS, or in clear."""

    def __init__(self, server: Serving, context: ssl.SSLContext | None) -> None:
        self.server = server
        self._context = context

    def plain(self, port: str) -> socket.socket:
        sock = socket.socket()
        sock.settimeout(PATIENCE_S)
        # What is not read is to wait at the server.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)
        sock.connect(("127.0.0.1", self.server.ports[port]))
        return sock

    def reaching(self, port: str) -> socket.socket:
        """With the handshake behind it, where there is one."""
        sock = self.plain(port)
        if self._context is None:
            return sock
        return self._context.wrap_socket(sock, server_hostname="127.0.0.1")


def hostile(folder: Path, plain: str) -> Iterator[Scene]:
    set_password(folder / "users", "anna", "secret")
    made = Certificates(folder)
    (cert, key), users = made.server, folder / "users"
    config = folder / "penstock.toml"
    config.write_text(CONFIG.format(users=users, cert=cert, key=key, plain=plain))
    flags = ("--config", str(config), "--mqtts-port", "0")
    with enough_descriptors(), serving(folder, *flags) as server:
        yield Scene(server, None if plain else made.context())


@pytest.fixture(scope="module")
def in_clear(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    yield from hostile(tmp_path_factory.mktemp("clear"), PLAIN)


@pytest.fixture(scope="module")
def over_tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    yield from hostile(tmp_path_factory.mktemp("tls"), "")


@contextmanager
def enough_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = HOSTILE + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"component: descriptors (there are {hard})")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_hundreds_of_hostile_connections_of_every_kind_cost_little(
    in_clear: Scene,
) -> None:
    cost_little(in_clear, BEFORE_TLS | IN_CLEAR, HOSTILE)


@pytest.mark.deep
def test_a_crowd_of_every_kind_costs_little_behind_its_handshakes(
    over_tls: Scene,
) -> None:
    cost_little(over_tls, INSIDE_TLS, BEHIND_TLS)


def cost_little(scene: Scene, attacks: dict[str, Attack], count: int) -> None:
    server = scene.server
    for name, attack in attacks.items():  # what is loaded and made once
        with crowd(scene, attack, 3) as socks:
            assert not name.startswith("half") or not any(map(ended, socks)), name
    descriptors, began = open_files(server), memory(server, "VmRSS")

    peaks = {}
    for name, attack in attacks.items():
        until(lambda: memory(server, "VmRSS") - began <= LEFT_MIB)
        Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # forget the peak
        with crowd(scene, attack, count):
            pass
        until(lambda: open_files(server) <= descriptors)
        peaks[name] = round(memory(server, "VmHWM") - began)

    assert max(peaks.values()) <= MOST_MIB, peaks
    until(lambda: memory(server, "VmRSS") - began <= LEFT_MIB)


@pytest.mark.parametrize("kind", ["in_clear", "over_tls"])
def test_somebody_honest_comes_in_while_hundreds_are_silent(
    kind: str, request: pytest.FixtureRequest
) -> None:
    scene: Scene = request.getfixturevalue(kind)
    with ExitStack() as stack:
        for _ in range(HOSTILE):
            stack.enter_context(scene.plain("line"))

        with honest(scene) as sock:
            sock.sendall(b"as anna secret\n")
            answer = sock.recv(1000)
            assert b"anna" in answer, answer
            assert b"wrong" not in answer, answer


@contextmanager
def crowd(scene: Scene, attack: Attack, count: int) -> Iterator[list[socket.socket]]:
    """So many at once, when the server has seen to all of them."""
    with ExitStack() as stack:
        socks = []
        for _ in range(count):
            with suppress(ConnectionError):  # others have taken its place
                socks.append(stack.enter_context(begun(scene, attack)))
        until(lambda: backlog(scene.server.ports[attack.port]) == 0)
        for _ in range(TURNS):  # each takes a turn of the loop
            honest(scene).close()
        yield socks


def begun(scene: Scene, attack: Attack) -> socket.socket:
    reach = scene.plain if attack in BEFORE_TLS.values() else scene.reaching
    sock = reach(attack.port)
    try:
        if attack.first:
            sock.sendall(attack.first)
            ask(sock, upgrade=attack.first is UPGRADE)
        sock.setblocking(False)
        with suppress(OSError):  # some are closed by now, or full
            sock.send(attack.data)
    except BaseException:
        sock.close()
        raise
    return sock


def ask(sock: socket.socket, *, upgrade: bool) -> None:
    got = b""
    while b"\r\n\r\n" not in got:
        data = sock.recv(4096)
        assert data, got
        got += data
    assert not upgrade or b" 101 " in got, got
    assert b"permessage-deflate" not in got


def honest(scene: Scene) -> socket.socket:
    """Somebody who was greeted."""
    sock = scene.reaching("line")
    assert sock.recv(100).decode().strip() == GREETING
    return sock


def ended(sock: socket.socket) -> bool:
    with suppress(BlockingIOError, ssl.SSLWantReadError):
        while sock.recv(4096):
            pass
        return True
    return False


def backlog(port: int) -> int:
    """Connections at a listening port that were not accepted yet."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, queues = line.split()[:5]
        if state == "0A" and int(local.partition(":")[2], 16) == port:
            return int(queues.partition(":")[2], 16)
    raise AssertionError(f"nobody listens at {port}")


def open_files(server: Serving) -> int:
    return sum(1 for _ in Path(f"/proc/{server.pid}/fd").iterdir())


def memory(server: Serving, name: str) -> float:
    """Of the server, in MiB."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(rf"{name}:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come to be"
        time.sleep(0.01)
