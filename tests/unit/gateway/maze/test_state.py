from __future__ import annotations

from penstock.gateway.maze import MazeState
from penstock.log import Batch, Columns, Log, LogOptions, Record, frame_of
from tests.unit.gateway.maze.scene import Maze

KIND = 7


def batch(base_offset: int, *lines: str) -> Batch:
    columns = Columns([line.encode() for line in lines], 0)
    return Batch.of("maze", frame_of(columns, base_offset, b"\0" * 16))


def restored(snapshot: bytes) -> MazeState:
    state = MazeState()
    state.restore(snapshot)
    return state


def same(one: MazeState, other: MazeState) -> bool:
    return one.snapshot() == other.snapshot()


def test_a_snapshot_restores_everything():
    maze = Maze()
    maze.send("1|F|1|2", "2|F|3|2", "3|U|1|2", "4|F|9|9")

    state = restored(maze.state.snapshot())

    assert state.followers.graph == {2: {3}, 9: {9}}
    assert (state.expected, state.applied) == (5, 4)


def test_the_topic_alone_gives_the_state():
    maze = Maze()
    maze.send("3|F|3|2", "1|F|1|2", "2|S|1", "4|U|1|2")

    state = MazeState()
    state.catch_up(maze.broker.batches)

    assert same(state, maze.state)


def test_catching_up_goes_on_where_the_snapshot_ends():
    maze = Maze()
    maze.send("1|F|1|2", "2|F|3|4")
    snapshot = maze.state.snapshot()
    maze.send("3|U|1|2", "4|F|5|6")

    state = restored(snapshot)
    state.catch_up(maze.broker.batches)

    assert same(state, maze.state)
    assert state.followers.graph == {4: {3}, 6: {5}}


def test_catching_up_starts_within_a_batch():
    maze = Maze()
    maze.send("1|F|1|2")
    state = restored(maze.state.snapshot())

    state.catch_up([batch(0, "1|F|1|2", "2|U|1|2")])

    assert state.followers.graph == {}
    assert (state.expected, state.applied) == (3, 2)


def test_a_run_that_started_afresh_is_found_in_the_topic():
    state = MazeState()

    state.catch_up([batch(0, "1|F|1|2", "2|B"), batch(2, "1|F|3|4", "2|B", "5|B")])

    assert state.followers.graph == {4: {3}}
    assert state.expected == 6


def test_what_is_no_event_of_the_maze_is_passed_over():
    state = MazeState()

    state.catch_up([batch(0, "1|F|1|2", "hello", '{"a": 1}', "2|F|3|2", "2|U|1|2")])

    assert state.followers.graph == {2: {1, 3}}
    assert (state.expected, state.applied) == (3, 5)


def test_events_known_already_do_no_harm():
    """A snapshot may know more than its offset says."""
    maze = Maze()
    maze.send("1|F|1|2", "2|U|1|2", "3|F|5|6")
    maze.state.applied = 1

    state = restored(maze.state.snapshot())
    state.catch_up(maze.broker.batches)

    assert state.followers.graph == {6: {5}}
    assert (state.expected, state.applied) == (4, 3)


def test_offsets_taken_back_are_not_counted_on():
    maze = Maze()
    maze.send("1|F|1|2", "2|F|3|4")

    maze.state.taken_back()
    assert restored(maze.state.snapshot()).applied == 0
    maze.broker.batches.clear()
    maze.send("3|B")

    assert maze.state.applied == 1
    assert maze.state.followers.graph == {2: {1}, 4: {3}}


def test_taken_back_returns_to_where_the_topic_was_when_opened():
    state = MazeState()
    state.catch_up([batch(0, "1|B", "2|B")])

    state.taken_back()

    assert state.applied == 2


def test_there_are_no_records():
    state = MazeState()

    state.replay(Record(kind=KIND, data=b"", group=1, time_ms=0))

    assert list(state.collect()) == []
    assert same(state, MazeState())


def test_the_log_keeps_it(tmp_path):
    state = MazeState()
    with Log.open(tmp_path, LogOptions(), owners={KIND: state}) as log:
        log.create_topic("maze")
        appended = log.append("maze", Columns([b"1|F|1|2", b"2|F|3|2"], 0))
        state.followers.follow(1, 2)
        state.followers.follow(3, 2)
        state.expected, state.applied = 3, appended.base_offset + appended.count
        log.sync()
        log.checkpoint()
        log.append("maze", Columns([b"3|U|1|2"], 0))
        log.sync()

    again = MazeState()
    with Log.open(tmp_path, LogOptions(), owners={KIND: again}) as log:
        again.catch_up(log.read("maze", again.applied))

    assert again.followers.graph == {2: {3}}
    assert (again.expected, again.applied) == (4, 3)
