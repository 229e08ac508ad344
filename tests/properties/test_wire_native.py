"""Native messages: come back as they were, cut anywhere; junk is refused, bounded."""

from __future__ import annotations

from typing import get_args

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import RemoteProtocolError
from penstock.wire.native import (
    ClientMessage,
    Finish,
    FrameSplitter,
    LargeAsk,
    Publish,
    Published,
    Received,
    ServerMessage,
    decode_client,
    decode_run,
    decode_server,
    encode,
    encode_published,
    is_plain,
)
from penstock.wire.native.frames import HEADER_BYTES

LIMIT = 64
numbers = st.integers(0, 2**63 - 1)
texts = st.text(st.characters(codec="utf-8"), max_size=8)
publishes = st.builds(Publish, numbers, texts, st.lists(st.binary(max_size=20)))
messages = st.one_of(
    publishes,
    st.builds(Finish, numbers, numbers, st.lists(numbers), st.lists(publishes)),
    st.tuples(st.sampled_from(range(1, 12)), st.lists(numbers | texts | st.none())).map(
        lambda pair: _from_array([pair[0], *pair[1]])
    ),
).filter(lambda message: message is not None)
junk = st.binary() | st.recursive(
    numbers | texts | st.none() | st.binary(), lambda inner: st.lists(inner)
).map(msgspec.msgpack.encode)


def _from_array(array: list[object]) -> ClientMessage | None:
    try:
        found = decode_client(msgspec.msgpack.encode(array))
    except RemoteProtocolError:
        return None
    return None if isinstance(found, LargeAsk) else found


@given(st.lists(messages), st.lists(st.integers(0, 500)))
def test_messages_come_back_however_the_stream_is_cut(
    sent: list[ClientMessage], cuts: list[int]
) -> None:
    stream = b"".join(map(encode, sent))
    inside = sorted(cut for cut in cuts if cut < len(stream))
    splitter = FrameSplitter(10_000)

    received: list[Received] = []
    for start, end in zip([0, *inside], [*inside, len(stream)], strict=True):
        received += map(decode_client, splitter.feed(stream[start:end]))

    assert received == sent
    assert splitter.held_bytes == 0


plain = st.builds(
    Publish,
    numbers,
    texts,
    st.lists(st.binary(max_size=20), max_size=3),
    st.none() | st.lists(texts | st.none(), max_size=3),
)


@given(st.lists(plain | messages, min_size=1))
def test_a_run_is_what_its_messages_are_one_by_one(sent: list[ClientMessage]) -> None:
    """Up to where one is something else, or is the fault of the peer."""
    bodies = [encode(one)[HEADER_BYTES:] for one in sent]
    expected: list[Publish] = []
    for body in bodies:
        try:
            one = decode_client(body)
        except RemoteProtocolError:
            break
        if not isinstance(one, Publish) or not (one.payloads and is_plain(one)):
            break
        expected.append(one)

    run, count = decode_run(bodies)

    assert count == len(expected)
    assert [Publish(*row) for row in zip(*(run or ()), strict=True)] == expected


@given(
    st.lists(st.tuples(numbers, numbers, st.none() | st.uuids().map(str)), min_size=1)
)
def test_answers_to_a_run_are_those_to_each(
    rows: list[tuple[int, int, str | None]],
) -> None:
    seqs, offsets, ids = zip(*rows, strict=True)

    bodies = FrameSplitter(1000).feed(encode_published(seqs, offsets, ids))

    assert [decode_server(body) for body in bodies] == [
        Published(seq, offset, None if id_ is None else [id_])
        for seq, offset, id_ in rows
    ]


@given(st.lists(st.binary()))
def test_a_splitter_holds_no_more_than_its_limit(pieces: list[bytes]) -> None:
    splitter = FrameSplitter(LIMIT)

    for piece in pieces:
        try:
            frames = splitter.feed(piece)
        except RemoteProtocolError:
            return
        assert all(len(frame) <= LIMIT for frame in frames)
        assert splitter.held_bytes < LIMIT + HEADER_BYTES


@given(junk)
def test_any_bytes_are_a_message_or_the_fault_of_the_peer(body: bytes) -> None:
    for decode, kinds in (
        (decode_client, get_args(ClientMessage)),
        (decode_server, get_args(ServerMessage)),
    ):
        try:
            message = decode(body)
        except RemoteProtocolError:
            continue
        assert isinstance(message, kinds)
