"""What MQTT clients can have a server keep: all of it bounded, most of it on disk."""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from penstock.log import Reader
from penstock.wire.mqtt import (
    Acks,
    ClientParser,
    Connack,
    Connect,
    PacketKind,
    Properties,
    Property,
    Publishes,
    RequestedFilter,
    ServerPacket,
    Suback,
    SubscribePacket,
    render_acks,
    render_connect,
    render_disconnect,
    render_publishes,
    render_subscribe,
)
from tests.effort import effort
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

PATIENCE_S = float(effort(60, 600))
SESSIONS = effort(1_500, 10_000)
RETAINED = effort(5_000, 100_000)
FLOODS = effort(2, 5)
SLOW = effort(10, 20)
FOREVER: Properties = {Property.SESSION_EXPIRY_INTERVAL: 0xFFFFFFFF}
CONFIG = """
[topics]
durability = "os"
[server]
max_connections = 20_000
max_connections_per_address = 20_000
[broker]
max_topics = 200_000
[mqtt]
sys_interval_s = 0
"""


@pytest.fixture
def server() -> Iterator[Serving]:
    """With its data in memory where that can be: there are very many small files."""
    place = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with TemporaryDirectory(dir=place) as folder:
        config = Path(folder, "penstock.toml")
        config.write_text(CONFIG)
        flags = ["--no-maze", "--no-line", "--no-json", "--config", str(config)]
        with serving(Path(folder), *flags) as server:
            yield server


class Peer:
    """One connection, blocking."""

    def __init__(
        self,
        server: Serving,
        name: str,
        *,
        version: int = 4,
        clean: bool = True,
        properties: Properties | None = None,
    ) -> None:
        address = ("127.0.0.1", server.ports["mqtt"])
        self.sock = socket.create_connection(address, PATIENCE_S)
        self._parser = ClientParser(1 << 24, version)
        self._packets: list[ServerPacket] = []
        self.send(
            render_connect(
                Connect(
                    version=version,
                    client_id=name,
                    clean_start=clean,
                    keep_alive=0,
                    properties=properties or {},
                )
            )
        )
        assert isinstance(self.next(), Connack)

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def next(self) -> ServerPacket:
        while not self._packets:
            data = self.sock.recv(1 << 18)
            assert data, "the server has closed"
            self._packets += self._parser.feed(data)
            assert self._parser.failed is None, self._parser.failed
        return self._packets.pop(0)

    def subscribe(self, filter_: str, qos: int) -> None:
        self.send(
            render_subscribe(
                4, SubscribePacket(packet_id=1, filters=[RequestedFilter(filter_, qos)])
            )
        )
        while not isinstance(self.next(), Suback):
            pass


def rss_mib(server: Serving) -> float:
    """The memory that the server has now."""
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(r"VmRSS:\s*(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def test_a_flood_of_half_open_publishes_is_bounded(server: Serving) -> None:
    """All ids of some clients are received, and none is ever released."""
    before = rss_mib(server)
    ids = list(range(1, 65_536))
    payloads = [b"%d" % id_ for id_ in ids]
    flood = [
        render_publishes(
            b"flood",
            payloads[at : at + 5_000],
            qos=2,
            packet_ids=ids[at : at + 5_000],
        )
        for at in range(0, len(ids), 5_000)
    ]
    with ExitStack() as stack:
        peers = [
            stack.enter_context(Peer(server, f"flood {number}", clean=False))
            for number in range(FLOODS)
        ]
        for peer in peers:
            for piece in flood:
                peer.send(piece)
                expect_acks(peer, PacketKind.PUBREC, piece.count(b"\x00\x05flood"))
        for piece in flood:  # once more: nothing is stored again
            peers[0].send(piece)
            expect_acks(peers[0], PacketKind.PUBREC, piece.count(b"\x00\x05flood"))

        grown = rss_mib(server) - before
    with Reader.open(server.data) as reader:
        assert reader.topic("flood").end_offset == len(peers) * len(ids)
    # 65 535 ids of each, at a few dozen bytes, and what came along with the first.
    assert grown < 20 + 20 * FLOODS, f"{grown:.0f} MiB"


def expect_acks(peer: Peer, kind: PacketKind, count: int) -> None:
    seen = 0
    while seen < count:
        packet = peer.next()
        assert isinstance(packet, Acks) and packet.kind is kind, packet
        seen += len(packet.packet_ids)
    assert seen == count


def test_thousands_of_idle_sessions_are_cheap(server: Serving) -> None:
    before = rss_mib(server)
    asyncio.run(come_and_go(server.ports["mqtt"], SESSIONS))

    grown = rss_mib(server) - before
    # 10 KiB for each, and what came along with the first.
    limit = 10 + SESSIONS / 100
    assert grown < limit, f"{grown:.0f} MiB, {grown * 1024 / SESSIONS:.1f} KiB each"
    server.kill()
    server.start()
    with Peer(server, "idle 1234", clean=False) as peer, Peer(server, "w") as writer:
        writer.send(render_publishes(b"idle/1234/x", [b"hello"], qos=1, packet_ids=[1]))
        found = peer.next()
    assert isinstance(found, Publishes)
    assert found.payloads == [b"hello"]


async def come_and_go(port: int, count: int) -> None:
    """So many clients subscribe, each to something of its own, and go."""
    limit = asyncio.Semaphore(100)

    async def one(number: int) -> None:
        async with limit:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            connect = Connect(
                version=4,
                client_id=f"idle {number}",
                clean_start=False,
                keep_alive=0,
            )
            wanted = [RequestedFilter(f"idle/{number}/+", 1)]
            writer.write(render_connect(connect))
            writer.write(
                render_subscribe(4, SubscribePacket(packet_id=1, filters=wanted))
            )
            answers = await reader.readexactly(4 + 5)
            assert answers[:1] == b"\x20" and answers[-1:] == b"\x01", answers
            writer.write(render_disconnect(4))
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async with asyncio.timeout(PATIENCE_S):
        await asyncio.gather(*(one(number) for number in range(count)))


def test_a_great_many_retained_messages(server: Serving) -> None:
    count = RETAINED
    before = rss_mib(server)
    with Peer(server, "writer") as writer:
        for base in range(0, count, 1_000):
            writer.send(
                b"".join(
                    render_publishes(
                        f"room/{number % 100}/sensor/{number}".encode(),
                        [b"%d" % number],
                        qos=0,
                        retain=True,
                    )
                    for number in range(base, base + 1_000)
                )
            )
        writer.send(render_publishes(b"end", [b"x"], qos=1, packet_ids=[1]))
        expect_acks(writer, PacketKind.PUBACK, 1)
    stored = rss_mib(server) - before

    wanted = {
        f"room/{number % 100}/sensor/{number}": b"%d" % number
        for number in range(count)
    }
    for qos in (0, 1):
        name = f"reader {qos}"
        with Peer(server, name, version=5, properties=FOREVER) as reader:
            assert retained(reader, qos, count) == wanted
    # Measured: 360 MiB for 100 000, nearly all of it for as many topics.
    limit = 20 + RETAINED * 6 / 1000
    assert stored < limit, f"{stored:.0f} MiB"
    shown = rss_mib(server) - before - stored
    assert shown < 100, f"{shown:.0f} MiB to show them"


def retained(peer: Peer, qos: int, count: int) -> dict[str, bytes]:
    """What a subscription to everything brings."""
    wanted = SubscribePacket(packet_id=1, filters=[RequestedFilter("#", qos)])
    peer.send(render_subscribe(5, wanted))
    found: dict[str, bytes] = {}
    while len(found) < count:
        packet = peer.next()
        if isinstance(packet, Suback):
            continue
        assert isinstance(packet, Publishes), packet
        assert packet.retain and packet.topic not in found
        found[packet.topic] = packet.payloads[-1]
        if packet.packet_ids:
            peer.send(render_acks(PacketKind.PUBACK, packet.packet_ids))
    return found


def test_deep_and_wide_topic_trees_are_bounded(server: Serving) -> None:
    """The deepest filter there is, again and again, and refused topics."""
    deepest = "/" * 32_000
    before = rss_mib(server)
    with Peer(server, "deep") as peer:
        for number in range(50):
            filter_ = f"{number}{deepest}#"
            peer.subscribe(filter_, 1)
            peer.send(render_publishes(filter_[:-1].encode(), [b"x"], qos=0))
        peer.subscribe("+/" * 30_000 + "#", 0)
        for _ in range(20):
            peer.send(render_publishes(b"a/" * 400 + b"b", [b"x"], qos=0))
        peer.subscribe("end", 0)
    grown = rss_mib(server) - before
    assert grown < 100, f"{grown:.0f} MiB"

    with Peer(server, "after") as peer:
        peer.subscribe("still/here", 0)


@pytest.mark.parametrize("qos", [0, 1])
def test_slow_readers_cost_disk_not_memory(server: Serving, qos: int) -> None:
    payloads = [bytes(1_000)] * 1_000
    with ExitStack() as stack:
        for number in range(SLOW):
            slow = stack.enter_context(
                Peer(server, f"slow {number}", version=4, clean=False)
            )
            slow.subscribe("fast", qos)  # and never reads again
        before = rss_mib(server)
        writer = stack.enter_context(Peer(server, "writer"))
        for _ in range(3 * SLOW):
            writer.send(render_publishes(b"fast", payloads, qos=0))
        writer.send(render_publishes(b"fast", [b"end"], qos=1, packet_ids=[1]))
        expect_acks(writer, PacketKind.PUBACK, 1)

        deadline_s = time.monotonic() + 2.0
        grown = rss_mib(server) - before
        while time.monotonic() < deadline_s:
            grown = max(grown, rss_mib(server) - before)
            time.sleep(0.1)
    # 3 MB for each of them, for each of them; what a connection buffers is bounded.
    assert grown < 12 * SLOW, f"{grown:.0f} MiB"
