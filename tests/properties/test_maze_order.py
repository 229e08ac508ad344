"""However the stream is shuffled, cut and littered, clients get the same bytes."""

from __future__ import annotations

from random import Random

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.gateway.maze import MazeState
from penstock.gateway.maze.reorder import Reorder, Reordered
from penstock.testing.maze import generate, line_of, notified, random_events
from tests.unit.gateway.maze.scene import Maze

# More of everything that changes the graph than the usual mix has.
MIX = {"S": 0.3, "F": 0.3, "U": 0.15, "P": 0.2, "B": 0.05}

seeds = st.integers(0, 2**32)


def feed_in_pieces(maze: Maze, data: bytes, random: Random) -> None:
    start = 0
    while start < len(data):
        stop = start + random.choice([1, 2, 10, 100, 5000])
        maze.feed(data[start:stop])
        start = stop


@given(seeds, st.integers(0, 300), st.integers(1, 8), st.integers(1, 120))
@example(666, 3000, 7, 100)
def test_clients_get_what_the_model_says_however_the_stream_is_cut(
    seed: int, events: int, clients: int, batch: int
) -> None:
    load = generate(seed, events, clients, 3 * clients, batch=batch, mix=MIX)
    maze = Maze(*load.clients)

    feed_in_pieces(maze, b"".join(load.chunks), Random(seed))

    assert maze.got == load.expected
    assert maze.broker.letters == []
    assert maze.state.expected == events + 1


@given(seeds, st.integers(1, 60), st.data())
def test_any_shuffle_within_the_hold_back_changes_nothing(
    seed: int, events: int, data: st.DataObject
) -> None:
    random = Random(seed)
    in_order = [
        (event, line_of(event) + b"\r\n")
        for event in random_events(random, events, 9, MIX)
    ]
    order = data.draw(st.permutations(range(events)))
    maze = Maze(1, 2, 3, hold_back=events)

    feed_in_pieces(maze, b"".join(in_order[i][1] for i in order), random)

    assert maze.got == notified(in_order, [1, 2, 3])
    assert maze.broker.published == [line.rstrip() for _, line in in_order]


@given(seeds, st.integers(1, 100), st.lists(st.binary(max_size=30), max_size=10))
def test_junk_between_events_is_kept_and_disturbs_nothing(
    seed: int, events: int, junk: list[bytes]
) -> None:
    load = generate(seed, events, 3, 9, batch=10, mix=MIX)
    random = Random(seed)
    # No number is in them, so none of them can use one up.
    lines = [b"junk " + text.replace(b"\n", b"") + b"\n" for text in junk]
    stream = b"".join(load.chunks).splitlines(keepends=True)
    for line in lines:
        stream.insert(random.randint(0, len(stream)), line)
    maze = Maze(*load.clients)

    feed_in_pieces(maze, b"".join(stream), random)

    assert maze.got == load.expected
    assert sorted(raw for _, raw in maze.broker.letters) == sorted(lines)


@given(st.binary(max_size=500), seeds)
def test_arbitrary_bytes_are_events_or_letters_and_never_an_error(
    data: bytes, seed: int
) -> None:
    maze = Maze(1, 2, hold_back=3, max_line_bytes=50)

    feed_in_pieces(maze, data, Random(seed))
    maze.end_source()
    client = maze.connect()
    client.receive(data, 0.0)
    client.eof(0.0)

    assert maze.hub.unregistered == 0


@given(
    st.lists(st.integers(0, 40), max_size=60),
    st.integers(1, 8),
    st.lists(st.integers(1, 10), min_size=1),
)
def test_what_is_skipped_for_lack_of_room_does_not_depend_on_the_cuts(
    numbers: list[int], hold_back: int, sizes: list[int]
) -> None:
    single: Reorder[int] = Reorder(hold_back, 5.0)
    pieces: Reorder[int] = Reorder(hold_back, 5.0)

    one_by_one = [single.take([n], [n], 0.0) for n in numbers]
    in_pieces: list[Reordered[int]] = []
    start = 0
    while start < len(numbers):
        stop = start + sizes[len(in_pieces) % len(sizes)]
        piece = numbers[start:stop]
        in_pieces.append(pieces.take(piece, list(piece), 0.0))
        start = stop
    one_by_one.append(single.flush())
    in_pieces.append(pieces.flush())

    for name in ("ready", "late", "gaps"):
        expected = [x for taken in one_by_one for x in getattr(taken, name)]
        assert [x for taken in in_pieces for x in getattr(taken, name)] == expected
    ready = [x for taken in in_pieces for x in taken.ready]
    assert ready == sorted(set(ready))
    assert sum(len(taken.ready) + len(taken.late) for taken in in_pieces) == len(
        numbers
    )


@given(seeds, st.integers(1, 200), st.integers(0, 200), st.booleans())
def test_snapshot_and_topic_give_the_state_again_at_any_point(
    seed: int, events: int, cut: int, restarts: bool
) -> None:
    random = Random(seed)
    maze = Maze()
    chunks = generate(seed, events, 2, 6, batch=9, mix=MIX).chunks
    snapshot = maze.state.snapshot()
    for number, chunk in enumerate(chunks):
        if number == cut % len(chunks):
            snapshot = maze.state.snapshot()
        if restarts and random.random() < 0.1:
            maze.end_source()
            maze.new_source()
        feed_in_pieces(maze, chunk, random)
    maze.end_source()

    state = MazeState()
    state.restore(snapshot)
    state.catch_up(maze.broker.batches)

    assert state.followers.graph == maze.state.followers.graph
    assert (state.expected, state.applied) == (maze.state.expected, maze.broker.end)


@given(seeds, st.integers(1, 150), st.integers(1, 150))
def test_a_second_run_starts_afresh_however_it_is_cut(
    seed: int, first: int, second: int
) -> None:
    one = generate(seed, first, 3, 9, mix=MIX)
    two = generate(seed + 1, second, 3, 9, mix=MIX)
    both = Maze(*range(1, 10))
    alone = Maze(*range(1, 10))

    feed_in_pieces(both, b"".join(one.chunks), Random(seed))
    both.end_source()
    both.got = dict.fromkeys(both.got, b"")
    both.new_source()
    for maze in (both, alone):
        feed_in_pieces(maze, b"".join(two.chunks), Random(seed))
        maze.end_source()

    assert both.got == alone.got
    assert both.state.followers.graph == alone.state.followers.graph
    assert both.broker.letters == []
