"""Many topic filters in a few bytes: what they take is done in turns with others.

A client sends packets in one write, each of which takes a while; when the first is
answered, a neighbour pings, and is answered before the last packet is.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tests.conformance import packets
from tests.conformance.packets import (
    DISCONNECT,
    PUBACK,
    PUBLISH,
    SUBACK,
    UNSUBACK,
    TopicFilter,
)
from tests.conformance.peer import Peer
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

TOPICS = 600
MANY = 8
IN_ONE = 1_000
QUOTA_EXCEEDED = 0x97


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("filters"), "--no-maze") as server:
        yield server
        assert "Traceback" not in server.log.read_text()


Join = Callable[..., Peer]


@pytest.fixture
def join(server: Serving) -> Iterator[Join]:
    peers: list[Peer] = []

    def joined(version: int = 5) -> Peer:
        peers.append(Peer(server.ports["mqtt"], version=version))
        peers[-1].connect()
        return peers[-1]

    yield joined
    for peer in peers:
        peer.drop()


def subscribe(packet_id: int, filters: list[str], version: int = 5) -> bytes:
    topic_filters = [TopicFilter(filter=one) for one in filters]
    return packets.subscribe(packet_id, topic_filters, version=version)


def with_topics(join: Join, root: str) -> Peer:
    """A client that hears of many topics."""
    peer, writer = join(), join()
    peer.subscribe(f"{root}/#")
    for number in range(TOPICS):
        writer.publish(f"{root}/{number}", b"x")
    for _ in range(TOPICS):
        peer.receive()
    return peer


def arrived(peer: Peer, kind: int) -> int:
    """How many packets of a kind are there by now."""
    peer.socket.setblocking(False)
    with suppress(BlockingIOError):
        while data := peer.socket.recv(1 << 20):
            peer._bytes += data
    with suppress(AssertionError):
        peer.take(kind=-1, wait_s=0)
    return sum(one.kind == kind for one in peer.inbox)


def answered_early(peer: Peer, kind: int, count: int, neighbour: Peer) -> int:
    """How many answers were there when the neighbour had got its own."""
    peer.take(kind)
    neighbour.ping()
    early = 1 + arrived(peer, kind)
    for _ in range(count - 1):
        peer.take(kind)
    return early


def test_many_filters_of_who_has_many_topics_keep_nobody_else_waiting(
    join: Join,
) -> None:
    peer, neighbour = with_topics(join, "s"), join()
    filters = [[f"s/+/{at}/{i}" for i in range(IN_ONE)] for at in range(MANY)]

    peer.send(b"".join(subscribe(at + 1, filters[at]) for at in range(MANY)))

    assert answered_early(peer, SUBACK, MANY, neighbour) < MANY

    peer.send(b"".join(packets.unsubscribe(at + 1, filters[at]) for at in range(MANY)))

    assert answered_early(peer, UNSUBACK, MANY, neighbour) < MANY


def test_new_topics_that_match_many_filters_keep_nobody_else_waiting(
    join: Join,
) -> None:
    peer, writer, neighbour = join(), join(), join()
    filters = ["m/" + "/".join(way) for way in itertools.product("a+", repeat=11)]
    for at in range(0, len(filters), IN_ONE):
        peer.subscribe(*(one + "/#" for one in filters[at : at + IN_ONE]))
    count = 100

    writer.send(
        b"".join(
            packets.publish(f"m{'/a' * 11}/{number}", b"x", qos=1, packet_id=number)
            for number in range(1, count + 1)
        )
    )

    assert answered_early(writer, PUBACK, count, neighbour) < count
    found = {peer.receive().topic for _ in range(count)}
    assert len(found) == count


def test_what_many_filters_bring_of_retained_messages_keeps_nobody_else_waiting(
    join: Join,
) -> None:
    peer, writer, neighbour = join(), join(), join()
    for number in range(TOPICS):
        writer.publish(f"r/{number}", b"x", qos=0, retain=True)
    writer.ping()

    peer.send(subscribe(1, [f"r/+/{i}" for i in range(IN_ONE - 1)] + ["r/+"]))
    peer.take(SUBACK)
    neighbour.ping()

    assert arrived(peer, PUBLISH) < TOPICS
    for _ in range(TOPICS):
        peer.receive()
    for topic in writer.retained:
        writer.publish(topic, retain=True)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("ends", [False, True], ids=["SUBSCRIBE", "UNSUBSCRIBE"])
def test_more_filters_than_a_packet_may_have_end_the_connection(
    join: Join, version: int, ends: bool
) -> None:
    peer = join(version)
    filters = ["a"] * (IN_ONE + 1)

    if ends:
        peer.send(packets.unsubscribe(1, filters, version=version))
    else:
        peer.send(subscribe(1, filters, version))

    said = [(one.kind, one.reason) for one in peer.closed()]
    assert said == ([(DISCONNECT, QUOTA_EXCEEDED)] if version == 5 else [])
