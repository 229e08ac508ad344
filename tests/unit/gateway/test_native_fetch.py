from __future__ import annotations

from pathlib import Path

import pytest

from penstock.access.grants import Rule
from penstock.client.fetching import Range, checked
from penstock.gateway.options import NativeOptions
from penstock.log import Columns, LogOptions
from penstock.wire.native import (
    Fetch,
    Fetched,
    Hello,
    Publish,
    Published,
    RequestRefused,
    ServerMessage,
    Subscribe,
)
from tests.unit.gateway.native_peer import NativePeer, only
from tests.unit.gateway.scene import Rules, Scene, limited

MIB = 1 << 20


def fill(peer: NativePeer, batches: int, *, size: int = 1) -> None:
    """Batches of two events each."""
    for number in range(batches):
        payloads = [b"%d" % (2 * number + one) + bytes(size) for one in range(2)]
        peer.say(Publish(1, "t", payloads))


def offsets(part: Range) -> list[int]:
    return [offset for batch in part.batches for offset in batch.offsets()]


def fetched(peer: NativePeer, offset: int, end: int, max_bytes: int = MIB) -> Range:
    (answer,) = peer.say(Fetch(7, "t", offset, end, max_bytes))
    assert isinstance(answer, Fetched), answer
    assert answer.seq == 7
    return checked(answer, "t", offset, end)


@pytest.mark.parametrize("stored", [False, True])
def test_a_range_is_what_was_published(scene: Scene, stored: bool) -> None:
    peer = NativePeer(scene)
    fill(peer, 5)
    if stored:
        scene.broker.log.checkpoint()

    part = fetched(peer, 3, 8)

    assert offsets(part) == [3, 4, 5, 6, 7]
    assert [p.rstrip(b"\0") for b in part.batches for p in b.payloads()] == [
        b"%d" % number for number in range(3, 8)
    ]
    assert (part.next_offset, part.start_offset, part.end_offset) == (8, 0, 10)


def test_frames_are_the_bytes_on_disk(scene: Scene, tmp_path: Path) -> None:
    peer = NativePeer(scene)
    fill(peer, 3)
    scene.broker.log.checkpoint()

    (answer,) = only(Fetched, peer.say(Fetch(1, "t", 0, 6, MIB)))

    (segment,) = tmp_path.rglob("*.seg")
    assert segment.read_bytes().endswith(b"".join(answer.frames))


def test_an_answer_is_bounded_and_says_where_to_go_on(scene: Scene) -> None:
    peer = NativePeer(scene, options=NativeOptions(max_fetch_bytes=2048))
    fill(peer, 6, size=400)

    first = fetched(peer, 0, 100)
    second = fetched(peer, first.next_offset, 100)
    asked_for = fetched(peer, 0, 100, max_bytes=1)

    assert (offsets(first), first.next_offset) == ([0, 1, 2, 3], 4)
    assert offsets(second) == [4, 5, 6, 7]
    assert offsets(asked_for) == [0, 1]


def test_a_batch_that_is_larger_comes_whole(scene: Scene) -> None:
    peer = NativePeer(scene, options=NativeOptions(max_fetch_bytes=1024))
    fill(peer, 2, size=5000)

    assert offsets(fetched(peer, 1, 4)) == [1]


@pytest.mark.parametrize(
    ("offset", "end", "goes_on"), [(4, 4, 4), (4, 9, 4), (2, 2, 2), (3, 99, 4)]
)
def test_the_end_is_the_end(scene: Scene, offset: int, end: int, goes_on: int) -> None:
    peer = NativePeer(scene)
    fill(peer, 2)

    part = fetched(peer, offset, end)

    assert (offsets(part), part.next_offset) == (list(range(offset, goes_on)), goes_on)


def test_events_are_fetched_when_they_are_committed(scene: Scene) -> None:
    peer = NativePeer(scene)
    fill(peer, 1)
    scene.commits = False
    peer.say(Publish(1, "t", [b"later"]))

    part = fetched(peer, 0, 99)

    assert (offsets(part), part.end_offset) == ([0, 1], 2)


@pytest.mark.parametrize(
    ("topic", "offset", "end", "error", "text"),
    [
        ("none", 0, 1, "UnknownTopic", "topic none does not exist"),
        ("t", 1, 4, "OffsetOutOfRange", "offset 1"),
        ("t", 7, 9, "OffsetOutOfRange", "offset 7"),
        ("t", 4, 3, "InvalidOption", "option end is 3: must be at least the offset, 4"),
    ],
)
def test_what_cannot_be_fetched_is_a_problem(
    scene: Scene, topic: str, offset: int, end: int, error: str, text: str
) -> None:
    peer = NativePeer(scene)
    fill(peer, 3)
    scene.broker.log.trim("t", 2)

    (answer,) = peer.say(Fetch(5, topic, offset, end, MIB))

    assert isinstance(answer, RequestRefused)
    assert (answer.seq, answer.error) == (5, error)
    assert text in answer.text


def test_answers_come_one_by_one_as_there_is_room(scene: Scene) -> None:
    """Many fetches in one read do not fill the memory."""
    peer = NativePeer(scene)
    fill(peer, 1, size=100_000)
    gateway = peer.gateway
    scene.commits = False

    gateway.receive(b"".join(fetch(seq) for seq in range(50)), 0.0)

    sizes = []
    while out := gateway.output(0.0, 300_000):
        sizes.append(sum(map(len, out)))
        assert gateway in scene.broker.awake or len(sizes) == 25
        scene.broker.awake.clear()
    assert max(sizes) < 500_000
    assert len(sizes) == 25


def fetch(seq: int) -> bytes:
    from penstock.wire.native import encode

    return encode(Fetch(seq, "t", 0, 2, MIB))


def test_subscribers_get_their_events_between_fetches(scene: Scene) -> None:
    peer = NativePeer(scene)
    fill(peer, 1, size=1000)
    peer.say(Subscribe(2, "t", None, "earliest", auto_ack=True))
    peer.read()

    got: list[ServerMessage] = peer.say(
        *(Fetch(seq, "t", 0, 2, MIB) for seq in range(3)), Publish(9, "t", [b"x"])
    )

    assert [one.seq for one in only(Fetched, got)] == [0, 1, 2]
    assert len(only(Published, got)) == 1


def test_fetches_that_wait_are_limited(scene: Scene) -> None:
    peer = NativePeer(scene, options=NativeOptions(max_fetches=2))
    fill(peer, 1)

    got = peer.say(*(Fetch(seq, "t", 0, 2, MIB) for seq in range(4)))

    assert [one.seq for one in only(Fetched, got)] == [0, 1]
    refused = only(RequestRefused, got)
    assert [(one.seq, one.error) for one in refused] == [
        (2, "LimitReached"),
        (3, "LimitReached"),
    ]


def test_damage_is_left_out_as_of_any_reader(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Rules(log=LogOptions(tail_cache_bytes=0)))
    peer = NativePeer(scene)
    for number in range(0, 6, 2):
        payloads = [b"%d" % one + bytes(50) for one in (number, number + 1)]
        peer.say(Publish(1, "t", payloads))
        scene.broker.log.checkpoint()
    (segment,) = tmp_path.rglob("*.seg")
    data = bytearray(segment.read_bytes())
    data[data.index(b"2" + bytes(50))] ^= 1
    segment.write_bytes(bytes(data))

    part = fetched(peer, 0, 6)

    assert (offsets(part), part.next_offset) == ([0, 1, 4, 5], 6)
    scene.close()


@pytest.mark.parametrize(
    ("rule", "answer"),
    [
        (Rule("read", "+"), Fetched),
        (Rule("subscribe", "t"), Fetched),
        (Rule("publish", "t"), RequestRefused),
        (Rule("read", "u"), RequestRefused),
    ],
)
def test_a_user_with_rules_reads_where_they_say(
    tmp_path: Path, rule: Rule, answer: type
) -> None:
    scene = Scene(tmp_path, limited(rule))
    scene.broker.publish("t", Columns([b"a"], 0))
    scene.broker.log.commit()
    anna = NativePeer(scene, Hello("anna", "pw", ""))

    (got,) = anna.say(Fetch(1, "t", 0, 1, MIB))

    assert type(got) is answer
    if isinstance(got, RequestRefused):
        assert got.text == "user anna may not read t"
    scene.close()
