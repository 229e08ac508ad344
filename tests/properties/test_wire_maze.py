"""Maze lines: a batch is its lines, any bytes are an event or bad for a reason."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.wire.lines import LineSplitter
from penstock.wire.maze import BROADCAST, STATUS, MazeRow, parse
from penstock.wire.maze.events import MAX_NUMBER

seqs = st.integers(1, MAX_NUMBER)
users = st.integers(0, MAX_NUMBER)
rows = st.one_of(
    st.tuples(seqs, st.sampled_from(b"FUP"), users, users),
    st.tuples(seqs, st.just(STATUS), users, st.just(0)),
    st.tuples(seqs, st.just(BROADCAST), st.just(0), st.just(0)),
)
ends = st.sampled_from([b"\n", b"\r\n"])
junk = st.binary() | st.lists(
    st.sampled_from(
        [b"|", b"1", b"0", b"70", b"F", b"S", b"B", b"\r", b",", b"]", b"["]
    )
).map(b"".join)


def line_of(row: MazeRow) -> bytes:
    seq, kind, sender, receiver = row
    users = {STATUS: [sender], BROADCAST: []}.get(kind, [sender, receiver])
    return b"|".join([b"%d" % seq, b"%c" % kind, *(b"%d" % user for user in users)])


@given(st.lists(st.tuples(rows, ends)), st.data())
def test_events_come_back_with_their_bytes_however_cut(
    events: list[tuple[MazeRow, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(line_of(row) + end for row, end in events)
    cut = data.draw(st.integers(0, len(stream)))
    splitter = LineSplitter(100)

    first, second = (
        parse(splitter.feed(stream[:cut])),
        parse(splitter.feed(stream[cut:])),
    )

    assert first.rows + second.rows == [row for row, _ in events]
    assert b"".join(first.raws + second.raws) == stream
    assert not first.bad and not second.bad


@given(st.lists(junk.map(lambda line: line.replace(b"\n", b""))))
def test_a_batch_of_anything_is_each_of_its_lines(lines: list[bytes]) -> None:
    alone = [parse([line]) for line in lines]

    together = parse(lines)

    assert together.rows == [row for one in alone for row in one.rows]
    assert together.raws == [raw for one in alone for raw in one.raws]
    assert together.bad == [bad for one in alone for bad in one.bad]
    assert len(together.rows) + len(together.bad) == len(lines)
