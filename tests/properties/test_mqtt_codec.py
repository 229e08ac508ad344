"""MQTT: packets come back as they were, cut anywhere; junk is refused, bounded.

And filters: the trees find what a look at each filter finds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import InvalidName
from penstock.model.topic_filter import check_filter, matches, shared
from penstock.sessions.filters import FilterTree, TopicTree
from penstock.wire.mqtt import (
    ClientPacket,
    ClientPacketParser,
    ClientParser,
    Malformed,
    Packet,
    PacketKind,
    Reason,
    ServerPacket,
    render_acks,
    render_publishes,
)
from tests.properties import mqtt_strategies as mqtt
from tests.unit.wire.mqtt.examples import (
    CLIENT,
    SERVER,
    one_by_one,
    open_client,
    open_parser,
    rendered_by_client,
    rendered_by_server,
)

LIMIT = 10_000
VERSIONS = (3, 4, 5)
# Junk is fed so often: some seconds, or minutes for whoever asks for that.
ROUNDS = 60_000 if settings.get_current_profile_name() == "deep" else 3_000

AnyParser = ClientPacketParser | ClientParser

cut_places = st.lists(st.integers(0, 3000), max_size=6)
chunks = st.lists(st.binary(max_size=60), max_size=8)


def cut(stream: bytes, places: Sequence[int]) -> list[bytes]:
    inside = sorted(place for place in places if place < len(stream))
    starts, ends = [0, *inside], [*inside, len(stream)]
    return [stream[a:b] for a, b in zip(starts, ends, strict=True)]


def outcome(
    parser: AnyParser, pieces: Sequence[bytes]
) -> tuple[list[Packet], Malformed | None]:
    """Everything that comes out; what comes behind an error is not fed."""
    packets: list[Packet] = []
    for piece in pieces:
        packets += parser.feed(piece)
        if parser.failed is not None:
            break
    return one_by_one(packets), parser.failed


def said(error: Malformed | None) -> tuple[Reason, str] | None:
    return None if error is None else (error.reason, error.text)


@pytest.mark.parametrize("version", VERSIONS)
@given(st.data())
def test_what_a_client_says_a_server_reads_however_it_is_cut(
    version: int, data: st.DataObject
) -> None:
    sent: list[ClientPacket] = [
        data.draw(mqtt.connects(version)),
        *data.draw(st.lists(mqtt.client_packets(version), max_size=6)),
        *data.draw(st.lists(mqtt.client_disconnects(version), max_size=1)),
    ]
    stream = b"".join(rendered_by_client(version, packet) for packet in sent)
    parser = ClientPacketParser(LIMIT)

    received, error = outcome(parser, cut(stream, data.draw(cut_places)))

    assert said(error) is None
    assert received == one_by_one([*sent])
    assert parser.held_bytes == 0


@pytest.mark.parametrize("version", VERSIONS)
@given(st.data())
def test_what_a_server_says_a_client_reads_however_it_is_cut(
    version: int, data: st.DataObject
) -> None:
    sent: list[ServerPacket] = [
        data.draw(mqtt.connacks(version)),
        *data.draw(st.lists(mqtt.server_packets(version), max_size=6)),
    ]
    stream = b"".join(rendered_by_server(version, packet) for packet in sent)
    parser = ClientParser(LIMIT, version)

    received, error = outcome(parser, cut(stream, data.draw(cut_places)))

    assert said(error) is None
    assert received == one_by_one([*sent])
    assert parser.held_bytes == 0


def parsers(limit: int) -> list[Callable[[], AnyParser]]:
    return [
        partial(ClientPacketParser, limit),
        *(partial(open_parser, version, limit) for version in VERSIONS),
        *(partial(open_client, version, limit) for version in VERSIONS),
    ]


@given(st.sampled_from(parsers(64)), chunks)
def test_any_bytes_are_packets_or_the_fault_of_the_peer_and_take_no_room(
    make: Callable[[], AnyParser], pieces: list[bytes]
) -> None:
    parser = make()

    for piece in pieces:
        packets = parser.feed(piece)
        assert all(isinstance(p, get_args(Packet)) for p in packets)
        assert parser.held_bytes <= 64
        if parser.failed is not None:
            with pytest.raises(Malformed):
                parser.feed(b"")
            return


def mangled(stream: bytes, rng: random.Random) -> bytes:
    """``stream`` with some bytes changed, left out or put in."""
    data = bytearray(stream)
    for _ in range(rng.randrange(1, 4)):
        place = rng.randrange(len(data))
        change = rng.randrange(4)
        if change == 0:
            data[place] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        elif change == 1:
            del data[place : place + rng.randrange(1, 4)]
        elif change == 2:
            data[place:place] = rng.randbytes(rng.randrange(1, 4))
        else:
            data[place] ^= 1 << rng.randrange(8)
        if not data:
            break
    return bytes(data)


def long_run(version: int, rng: random.Random) -> bytes:
    """Many packets of one topic, or acknowledgements, most of one length."""
    count = rng.randrange(1, 200)
    ids = [rng.randrange(1, 65536) for _ in range(count)]
    if rng.random() < 0.3:
        return render_acks(rng.choice((PacketKind.PUBACK, PacketKind.PUBREL)), ids)
    lengths = rng.choice(((3,), (3,) * 20 + (4,), (0, 1, 130)))
    qos = rng.randrange(3)
    return render_publishes(
        b"a/b",
        [b"x" * rng.choice(lengths) for _ in range(count)],
        qos=qos,
        packet_ids=ids if qos else None,
        properties=b"\0" if version == 5 else None,
    )


def mangled_stream(seed: int) -> tuple[bytes, Callable[[], AnyParser]]:
    rng = random.Random(seed)
    version = rng.choice(VERSIONS)
    runs = [long_run(version, rng)] if rng.random() < 0.5 else []
    if rng.random() < 0.5:
        first, *rest = (rendered_by_client(version, p) for p in CLIENT[version][:-1])
        make: Callable[[], AnyParser] = partial(ClientPacketParser, LIMIT)
    else:
        first, *rest = (rendered_by_server(version, p) for p in SERVER[version][:-1])
        make = partial(ClientParser, LIMIT, version)
    chosen = rng.choices(rest, k=rng.randrange(1, 8)) + runs
    return mangled(first + b"".join(chosen), rng), make


def test_streams_with_errors_mean_the_same_however_they_are_cut() -> None:
    failures = 0
    for seed in range(ROUNDS):
        stream, make = mangled_stream(seed)
        rng = random.Random(seed)

        whole, error = outcome(make(), [stream])
        places = [rng.randrange(len(stream) + 1) for _ in range(rng.randrange(5))]
        pieces, other = outcome(make(), cut(stream, places))
        singles, last = outcome(make(), [bytes((byte,)) for byte in stream])

        assert pieces == singles == whole, f"seed {seed}"
        assert said(other) == said(last) == said(error), f"seed {seed}"
        failures += error is not None

    assert ROUNDS // 4 < failures < ROUNDS


def test_random_bytes_are_packets_or_the_fault_of_the_peer() -> None:
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        make = rng.choice(parsers(LIMIT))
        # First bytes that mean something, so that more than those is looked at.
        kinds = (0x10, 0x20, 0x30, 0x32, 0x3D, 0x40, 0x62, 0x82, 0x90, 0xA2, 0xE0, 0xF0)
        stream = b"".join(
            bytes((rng.choice(kinds), length)) + rng.randbytes(length)
            for length in (rng.randrange(40) for _ in range(4))
        )

        packets, error = outcome(make(), [stream])
        pieces, other = outcome(make(), cut(stream, [rng.randrange(100)]))

        assert (packets, said(error)) == (pieces, said(other)), f"seed {seed}"


levels = st.sampled_from(("a", "b", "", "$x", "cc"))
names = st.lists(levels, min_size=1, max_size=5).map("/".join)
# One level that is empty is no filter: that would be empty as well.
topic_filters = st.builds(
    lambda parts, rest: "/".join([*parts, *rest]) or "/",
    st.lists(levels | st.just("+"), min_size=1, max_size=4),
    st.sampled_from(([], ["#"])),
) | st.just("#")
# True: add, False: remove.
changes = st.lists(
    st.tuples(st.booleans(), topic_filters, st.integers(0, 2)), max_size=30
)


@given(changes, st.lists(names, max_size=5))
def test_a_tree_finds_the_filters_that_match(
    steps: list[tuple[bool, str, int]], topics: list[str]
) -> None:
    tree: FilterTree[int, str] = FilterTree()
    model: dict[tuple[str, int], str] = {}

    for adds, filter, key in steps:
        if adds:
            tree.add(filter, key, filter)
            model[filter, key] = filter
        else:
            there = model.pop((filter, key), None) is not None
            assert tree.remove(filter, key) is there
        assert len(tree) == len(model)

    for topic in topics:
        assert sorted(tree.match(topic)) == sorted(
            (key, value) for (f, key), value in model.items() if matches(f, topic)
        )


@given(
    st.lists(st.tuples(st.booleans(), names), max_size=30),
    st.lists(topic_filters, max_size=5),
)
def test_a_tree_finds_the_names_that_match(
    steps: list[tuple[bool, str]], wanted: list[str]
) -> None:
    tree, model = TopicTree(), set[str]()

    for adds, name in steps:
        (tree.add if adds else tree.remove)(name)
        (model.add if adds else model.discard)(name)
        assert len(tree) == len(model)

    for filter in wanted:
        assert sorted(tree.match(filter)) == sorted(
            name for name in model if matches(filter, name)
        )


@given(topic_filters, names)
def test_good_filters_are_good_when_shared(filter: str, group: str) -> None:
    check_filter(filter)

    group = group.replace("/", "") or "g"
    assert shared(f"$share/{group}/{filter}") == (group, filter)


@given(st.text("a/+#$\0", max_size=8))
def test_any_text_is_a_filter_or_refused(text: str) -> None:
    for check in (check_filter, shared):
        try:
            check(text)
        except InvalidName as refused:
            assert refused.kind == "topic filter"
