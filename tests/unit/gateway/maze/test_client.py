from __future__ import annotations

import logging

import pytest

from tests.unit.gateway.maze.scene import ROOM, Maze


@pytest.mark.parametrize("line", [b"2932\n", b"2932\r\n"])
def test_an_id_line_registers_and_is_not_answered(line: bytes) -> None:
    maze = Maze()
    client = maze.connect()

    client.receive(line, 0.0)

    assert client.output(0.0, ROOM) == []
    assert len(maze.hub.router) == 1
    assert not client.closing


def test_an_id_line_may_come_in_pieces():
    maze = Maze()
    client = maze.connect()

    for byte in b"50\r\n":
        assert maze.hub.unregistered == 1
        client.receive(bytes([byte]), 0.0)

    assert maze.hub.unregistered == 0
    maze.send("1|P|1|50")
    assert client.output(0.0, ROOM) == [b"1|P|1|50\n"]


@pytest.mark.parametrize("line", [b"me", b"", b"-1", b"1 2", b"\xff", b"9" * 40])
def test_a_bad_id_is_a_dead_letter_and_closes(line: bytes) -> None:
    maze = Maze()
    client = maze.connect()

    client.receive(line + b"\n", 0.0)

    assert client.closing
    assert maze.hub.unregistered == 0
    [(reason, raw)] = maze.broker.letters
    assert "client id" in reason
    assert raw == line


def test_an_overlong_id_is_a_dead_letter_and_closes():
    maze = Maze(max_line_bytes=10)
    client = maze.connect()

    client.receive(b"1" * 20, 0.0)
    client.receive(b"\n", 0.0)

    assert client.closing
    assert maze.broker.letters == [("client id exceeds 10 bytes", b"")]


def test_what_follows_the_id_is_ignored():
    maze = Maze()
    client = maze.connect()

    client.receive(b"7\n8\nhello", 0.0)
    client.receive(b"\n9\n", 0.0)

    assert len(maze.hub.router) == 1
    assert not client.closing
    assert maze.broker.letters == []


def test_clients_without_an_id_are_counted_until_they_have_one_or_leave():
    maze = Maze()
    one, two, three = maze.connect(), maze.connect(), maze.connect()
    assert maze.hub.unregistered == 3

    one.receive(b"1\n", 0.0)
    two.eof(0.0)
    two.disconnected(0.0)
    three.disconnected(0.0)

    assert maze.hub.unregistered == 0
    assert maze.hub.arrivals == 3


def test_a_client_that_ends_its_side_leaves():
    maze = Maze(1)

    maze.clients[1].eof(0.0)
    maze.send("1|P|2|1")

    assert maze.clients[1].closing
    assert maze.got[1] == b""
    assert maze.hub.absent == 1


def test_an_id_without_a_line_end_is_heard_when_the_client_ends_its_side():
    maze = Maze()
    client = maze.connect()
    client.receive(b"no number", 0.0)

    client.eof(0.0)

    assert maze.broker.letters[0][1] == b"no number"
    assert maze.hub.unregistered == 0


def test_output_is_given_in_pieces_of_the_room_there_is():
    maze = Maze(1)
    client = maze.clients[1]
    maze.source.receive(b"1|P|2|1\n2|P|2|1\n", 0.0)

    pieces = [client.output(0.0, 5) for _ in range(5)]

    assert pieces == [[b"1|P|2"], [b"|1\n2|"], [b"P|2|1"], [b"\n"], []]
    assert client.output(0.0, 0) == []


def test_the_newest_connection_replaces_the_former_which_gets_its_rest():
    maze = Maze(1)
    former = maze.clients[1]
    maze.source.receive(b"1|P|2|1\n", 0.0)

    newest = maze.join(1)
    maze.source.receive(b"2|P|2|1\n", 0.0)

    assert former.closing
    assert former in maze.broker.awake
    assert former.output(0.0, ROOM) == [b"1|P|2|1\n"]
    assert newest.output(0.0, ROOM) == [b"2|P|2|1\n"]
    former.disconnected(0.0)
    assert not newest.closing
    assert maze.hub.absent == 0


def test_a_client_that_does_not_read_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    maze = Maze(1, 2, max_client_buffer_bytes=20)
    client = maze.clients[1]

    maze.source.receive(b"1|P|9|1\n2|P|9|1\n", 0.0)
    assert maze.hub.absent == 0
    maze.source.receive(b"3|P|9|1\n4|P|9|1\n", 0.0)

    assert client.closing
    assert client in maze.broker.awake
    assert client.output(0.0, ROOM) == []
    assert maze.hub.absent == 4
    assert [record.__dict__["action"] for record in caplog.records] == [
        "maze_client_given_up"
    ]
    maze.send("5|P|9|1", "6|P|9|2")
    assert maze.hub.absent == 5
    assert maze.got[2] == b"6|P|9|2\n"


def test_what_was_not_sent_when_a_client_goes_counts_as_absent():
    maze = Maze(1, store_absent=True)
    client = maze.clients[1]
    maze.source.receive(b"1|P|9|1\r\n2|P|9|1\r\n3|P|9|1\r\n", 0.0)
    client.output(0.0, 9)

    client.disconnected(0.0)
    client.disconnected(0.0)

    assert maze.hub.absent == 2
    assert maze.broker.letters == [
        ("client 1 has left", b"2|P|9|1\r\n"),
        ("client 1 has left", b"3|P|9|1\r\n"),
    ]


def test_a_client_that_comes_back_is_told_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    maze = Maze(1)

    with caplog.at_level(logging.INFO):
        maze.join(1)

    assert caplog.records[0].__dict__["action"] == "maze_client_replaced"
