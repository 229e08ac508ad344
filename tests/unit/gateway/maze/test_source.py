from __future__ import annotations

import pytest

from penstock.gateway.maze import MazeSource
from tests.unit.gateway.maze.scene import ROOM, Maze


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_events_are_forwarded_with_the_bytes_they_came_with(end: str) -> None:
    maze = Maze(50, 56)

    maze.send("2|P|32|56", "1|F|60|50", end=end)

    assert maze.got[50] == f"1|F|60|50{end}".encode()
    assert maze.got[56] == f"2|P|32|56{end}".encode()
    assert maze.broker.published == [b"1|F|60|50", b"2|P|32|56"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_the_stream_may_be_cut_anywhere(size: int) -> None:
    maze = Maze(1, 2)
    data = b"1|F|1|2\r\n3|S|2\r\n2|P|5|1\n4|B\r\n"

    for start in range(0, len(data), size):
        maze.feed(data[start : start + size])

    assert maze.got == {1: b"2|P|5|1\n3|S|2\r\n4|B\r\n", 2: b"1|F|1|2\r\n4|B\r\n"}


def test_a_second_source_is_refused_while_the_first_is_connected(
    caplog: pytest.LogCaptureFixture,
) -> None:
    maze = Maze(1)
    second = MazeSource(maze.hub)

    second.connected(0.0)
    second.receive(b"1|B\n", 0.0)
    second.eof(0.0)
    second.disconnected(0.0)
    maze.send("1|P|9|1")

    assert second.closing
    assert maze.got[1] == b"1|P|9|1\n"
    assert caplog.records[0].__dict__["action"] == "maze_source_refused"


def test_a_source_gets_nothing():
    maze = Maze()

    maze.send("1|B")

    assert maze.source.output(0.0, ROOM) == []


def test_a_last_line_without_its_end_counts_and_gets_one():
    maze = Maze(1)

    maze.feed(b"1|B\n2|B")
    maze.end_source()

    assert maze.got[1] == b"1|B\n2|B\n"


def test_a_line_cut_by_a_broken_connection_is_a_dead_letter():
    maze = Maze(1)
    maze.feed(b"1|B\n3|B\n2|P|5|1")

    maze.source.disconnected(0.0)
    maze.pull()

    assert maze.broker.letters == [("the connection broke within the line", b"2|P|5|1")]
    assert maze.got[1] == b"1|B\n3|B\n"


def test_overlong_lines_are_dead_letters():
    maze = Maze(1, max_line_bytes=20)

    maze.feed(b"1|" + b"x" * 100 + b"\n1|B\n" + b"2" * 50)
    maze.end_source()

    assert [raw for _, raw in maze.broker.letters] == [b"", b""]
    assert maze.got[1] == b"1|B\n"


def test_after_its_end_a_source_makes_room_for_another():
    maze = Maze(1)
    maze.source.eof(0.0)
    assert maze.source.closing

    maze.new_source()
    maze.send("1|B")

    assert maze.got[1] == b"1|B\n"


def test_a_broken_connection_lets_out_what_was_held():
    maze = Maze(1)
    maze.feed(b"2|B\n")

    maze.source.disconnected(0.0)
    maze.pull()

    assert maze.got[1] == b"2|B\n"
    assert maze.broker.letters == []
