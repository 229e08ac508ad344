"""Connections of people nobody knows: however many and bad, they cost little."""

from __future__ import annotations

import base64
import re
import resource
import socket
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from penstock.server.accepting import AT_ONCE
from penstock.server.users_file import set_password
from tests.interop.certificates import Certificates
from tests.serving import Serving, serving
from tests.wire_client import PATIENCE_S, Wire

pytestmark = pytest.mark.slow

HOSTILE = 1_000
MOST_MIB = 64
# What may be left when all have gone: pages that allocators keep.
LEFT_MIB = 24
GREETING = "Successfully connected to message_broker"

CONFIG = """
[server]
users_file = "{users}"
max_connections_per_address = 0
[tls]
cert_file = "{cert}"
key_file = "{key}"
"""

UPGRADE = (
    "GET /mqtt HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Key: {base64.b64encode(bytes(16)).decode()}\r\n"
    "Sec-WebSocket-Protocol: mqtt\r\n"
    "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"
)


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


CONNECT = b"\x00\x04MQTT\x04\x02\x00\x3c" + bytes(15_000)
BOMBS = bomb(15 << 20) * 4
PINGS = frame(b"x" * 125, opcode=9) * 100

# What they do, at which port; a WebSocket is opened in front of what goes to it.
# The dearest come first, while nothing of the others is left in the allocators.
ATTACKS: dict[str, tuple[str, bytes]] = {
    "no handshake": ("mqtts", b""),
    "half a handshake": ("mqtts", hello(16_000)),
    "a large handshake": ("mqtts", hello(131_000)),
    "blank lines": ("line", b"\n" * 100_000),
    "a line without an end": ("line", b"as " + b"x" * 200_000),
    "half a line": ("line", b"as " + b"x" * 16_000),
    "a consumer without an end": ("consumer", b"x" * 200_000),
    "a publisher of blank lines": ("publisher", b"\n" * 100_000),
    "half a maze client": ("maze_client", b"1" * 16_000),
    "half a hello": ("native", (16_384).to_bytes(4, "little") + bytes(16_000)),
    "half a CONNECT": ("mqtt", mqtt(16_000, CONNECT)),
    "a large CONNECT": ("mqtt", mqtt(16_000_000, CONNECT + bytes(200_000))),
    "half headers": ("http", b"GET / HTTP/1.1\r\nX: " + b"x" * 30_000),
    "half a body": (
        "http",
        b"POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n" + bytes(100_000),
    ),
    "half a message": ("/mqtt", frame(bytes(16_000), claim=1 << 20)),
    "a bomb": ("/mqtt", BOMBS),
    "pings": ("/mqtt", PINGS),
    "silence": ("line", b""),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    folder = tmp_path_factory.mktemp("hostile")
    set_password(folder / "users", "anna", "secret")
    cert, key = Certificates(folder).server
    config = folder / "penstock.toml"
    config.write_text(CONFIG.format(users=folder / "users", cert=cert, key=key))
    flags = ("--config", str(config), "--mqtts-port", "0")
    with enough_descriptors(), serving(folder, *flags) as server:
        yield server


@contextmanager
def enough_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = HOSTILE + 500
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"component: descriptors (there are {hard})")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_thousand_hostile_connections_of_every_kind_cost_little(
    server: Serving,
) -> None:
    for attack in ATTACKS.values():  # what is loaded and made once
        crowd(server, *attack, count=3)
    descriptors, began = open_files(server), memory(server, "VmRSS")

    peaks = {}
    for name, attack in ATTACKS.items():
        until(lambda: memory(server, "VmRSS") - began <= LEFT_MIB)
        Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # forget the peak
        crowd(server, *attack, count=HOSTILE)
        until(lambda: open_files(server) <= descriptors)
        peaks[name] = round(memory(server, "VmHWM") - began)

    assert max(peaks.values()) <= MOST_MIB, peaks
    until(lambda: memory(server, "VmRSS") - began <= LEFT_MIB)


def crowd(server: Serving, where: str, data: bytes, count: int) -> None:
    """So many at once; they go when the server has seen to all of them."""
    with ExitStack() as stack:
        socks = [stack.enter_context(reaching(server, where)) for _ in range(count)]
        if where.startswith("/"):
            open_sockets(server, socks)
        for sock in socks:
            sock.setblocking(False)
            with suppress(OSError):  # some are closed by now
                sock.send(data)
        for _ in range(2 + 2 * count // AT_ONCE):  # each takes a turn of the loop
            with Wire(server.ports["line"]) as honest:
                assert honest.line() == GREETING


def reaching(server: Serving, where: str) -> socket.socket:
    port = server.ports["http" if where.startswith("/") else where]
    return socket.create_connection(("127.0.0.1", port), PATIENCE_S)


def open_sockets(server: Serving, socks: list[socket.socket]) -> None:
    for sock in socks:
        sock.sendall(UPGRADE.format(port=server.ports["http"]).encode())
    for sock in socks:
        got = b""
        while b"\r\n\r\n" not in got:
            data = sock.recv(4096)
            assert data, got
            got += data
        assert b" 101 " in got, got
        assert b"permessage-deflate" not in got


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
