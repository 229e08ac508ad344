"""Small frames become large ones, and nobody can tell from the events."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.log import Batch, Columns, frame_of
from penstock.log.frame import intact, pack
from penstock.log.gather import GATHERED_BYTES, gathered
from penstock.log.rows import EVENT_BYTES, RowEvents, RowsPart, part_of
from penstock.log.tail import TailFrame, TailPart
from penstock.model import ids
from penstock.model.event import Event

NOW_MS = 1_767_225_600_000
LOW_ID = ids.low_id(bytes(range(10)))


class Topic:
    """Parts as a topic gets them, one behind the other."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.next_offset = 0
        self.parts: list[TailPart] = []

    def publish(self, kind: str, count: int) -> None:
        if self.random.random() < 0.1:  # what was between is damaged
            self.next_offset += 3
        base, columns = self.next_offset, self._columns(count)
        self.parts.append(getattr(self, kind)(columns, base))
        self.next_offset = self.parts[-1].end_offset

    def _columns(self, count: int) -> Columns:
        draw = self.random
        size = draw.choice([0, 10, 100, 1000])
        columns = Columns(
            [draw.randbytes(draw.randint(0, size)) for _ in range(count)],
            [NOW_MS + draw.randrange(draw.choice([1, 100_000])) for _ in range(count)],
        )
        if draw.random() < 0.3:
            columns.keys = [draw.choice([None, b"k", b""]) for _ in range(count)]
        if draw.random() < 0.3:
            columns.ids = [draw.choice([None, "mine"]) for _ in range(count)]
        if draw.random() < 0.3:
            columns.priorities = [draw.randrange(3) for _ in range(count)]
        if draw.random() < 0.3:
            columns.headers = [draw.choice([{}, {"a": "b"}]) for _ in range(count)]
        if draw.random() < 0.3:
            columns.not_before = [draw.choice([0, NOW_MS]) for _ in range(count)]
        columns.check()
        return columns

    # Kinds of parts

    def alone(self, columns: Columns, base: int) -> TailPart:
        """All of a group."""
        return part_of(columns, base, LOW_ID + base)

    def among_others(self, columns: Columns, base: int) -> TailPart:
        """Some events of rows."""
        count = len(columns)
        places = [0, *([1] * count)]
        whole = Columns([b"another topic's"], NOW_MS)
        whole.extend(columns)
        latest = max(columns.timestamps)
        rows = RowEvents(whole, places)
        return RowsPart(rows, 1, 200, base, count, latest, LOW_ID + base)

    def earlier(self, columns: Columns, base: int) -> TailPart:
        """As a version before wrote it: each frame has ids of its own."""
        low = ids.low_id(self.random.randbytes(10))
        id_base = ids.id_base(columns.timestamps[0], low)
        return TailFrame.of(frame_of(columns, base, id_base))

    def compacted(self, columns: Columns, base: int) -> TailPart:
        """With gaps in its offsets."""
        columns.offsets = [2 * at + 1 for at in range(len(columns))]
        return TailFrame.of(frame_of(columns, base, bytes(16)))


KINDS = ("alone", "among_others", "earlier", "compacted")


def events(parts: Iterable[TailPart]) -> list[Event]:
    return [one for part in parts for one in Batch.whole("t", *part.frame()).events()]


@given(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 300)), max_size=30),
    st.sampled_from([500, 4_000, GATHERED_BYTES]),
    st.integers(0, 1 << 32),
)
def test_events_are_the_same_before_and_after(
    published: list[tuple[str, int]], most: int, seed: int
) -> None:
    topic = Topic(Random(seed))
    for kind, count in published:
        topic.publish(kind, count)

    frames = list(gathered("t", topic.parts, most))

    assert events(frame for frame, _ in frames) == events(topic.parts)
    assert [part for _, of in frames for part in of] == topic.parts
    for frame, of in frames:
        block = memoryview(pack(frame.header) + frame.body)
        assert intact(block, 0, frame.header)
        assert frame.base_offset == of[0].base_offset
        assert frame.end_offset == of[-1].end_offset


@pytest.mark.parametrize("kind", ["alone", "among_others"])
@pytest.mark.parametrize("size", [10, 100, 1000])
def test_frames_of_single_events_become_large(kind: str, size: int) -> None:
    count = 4 * GATHERED_BYTES // size
    parts: list[TailPart] = []
    for base in range(count):
        columns = Columns([bytes(size)], NOW_MS + base)
        columns.check()
        if kind == "alone":
            parts.append(part_of(columns, base, LOW_ID + base))
        else:
            stamp, rows = NOW_MS + base, RowEvents(columns, [0])
            each = columns.size + EVENT_BYTES
            parts.append(RowsPart(rows, 0, each, base, 1, stamp, LOW_ID + base))

    frames = [frame for frame, _ in gathered("t", parts)]

    assert all(frame.size > GATHERED_BYTES / 3 for frame in frames[:-1])
    assert all(frame.size < 1.1 * GATHERED_BYTES for frame in frames)


@pytest.mark.parametrize(
    ("counts", "frames"),
    [
        ([63, 63], [[63, 63]]),
        ([64, 63], [[64], [63]]),
        ([1, 64], [[1], [64]]),
        ([1, 1, 64, 1], [[1, 1], [64], [1]]),
    ],
)
def test_frames_with_another_line_of_ids_join_while_few_ids_are_written_out(
    counts: list[int], frames: list[list[int]]
) -> None:
    topic = Topic(Random(1))
    parts: list[TailPart] = []
    for base, count in zip(accumulate(counts, initial=0), counts, strict=False):
        columns = Columns([b"x"] * count, NOW_MS)
        columns.check()
        parts.append(topic.earlier(columns, base))

    assert [[one.events for one in of] for _, of in gathered("t", parts)] == frames


@pytest.mark.parametrize(("count", "joins"), [(63, True), (64, False), (200, False)])
def test_frames_of_publishers_with_several_times_are_let_alone_if_they_have_many(
    count: int, joins: bool
) -> None:
    """Their ids count from the base, so they would have to be written out."""
    parts: list[TailPart] = []
    for base in (0, count, 2 * count):
        columns = Columns([b"x"] * count, [NOW_MS + at for at in range(count)])
        parts.append(TailFrame.of(frame_of(columns, base, bytes(16))))

    found = list(gathered("t", parts))

    assert events(frame for frame, _ in found) == events(parts)
    assert [of for _, of in found] == ([parts] if joins else [[one] for one in parts])
