from __future__ import annotations

import pytest

from penstock.gateway.maze.followers import Followers
from penstock.gateway.maze.letters import MazeLetters
from penstock.gateway.maze.router import NO_KIND, MazeRouter, RoutedLine
from penstock.wire.maze import parse
from tests.unit.gateway.maze.scene import FakeBroker


class Ear:
    """A listener that keeps what it heard, batch by batch."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.heard: list[bytes] = []
        self.is_replaced = False

    def gather(self) -> None:
        self.heard.append(b"".join(self.lines))
        self.lines.clear()

    def replaced(self) -> None:
        self.is_replaced = True


class Scene:
    def __init__(self, *clients: int, store_absent: bool = False) -> None:
        self.broker = FakeBroker()
        self.followers = Followers()
        self.router = MazeRouter(
            self.followers, MazeLetters(self.broker), store_absent=store_absent
        )
        self.ears = {client: Ear() for client in clients}
        for client, ear in self.ears.items():
            self.router.join(client, ear)

    def route(self, *lines: str) -> None:
        rows, raws, bad = parse([line.encode() for line in lines])
        assert not bad
        items: list[RoutedLine] = list(zip(rows, raws, strict=True))
        self.router.route(items)

    def heard(self, client: int) -> bytes:
        return b"".join(self.ears[client].heard)


# What each event tells whom, with clients 12, 32, 50, 56 and 60 connected.
TABLE = [
    pytest.param(["666|F|60|50"], {50: b"666|F|60|50\n"}, id="follow"),
    pytest.param(["1|U|12|9"], {}, id="unfollow"),
    pytest.param(
        ["542532|B"],
        dict.fromkeys((12, 32, 50, 56, 60), b"542532|B\n"),
        id="broadcast",
    ),
    pytest.param(["43|P|32|56"], {56: b"43|P|32|56\n"}, id="private"),
    pytest.param(["634|S|32"], {}, id="status without followers"),
    pytest.param(
        ["1|F|12|32", "2|F|50|32", "3|S|32"],
        {32: b"1|F|12|32\n2|F|50|32\n", 12: b"3|S|32\n", 50: b"3|S|32\n"},
        id="status to followers",
    ),
    pytest.param(
        ["1|F|12|99", "2|S|99"], {12: b"2|S|99\n"}, id="an absent user is followed"
    ),
    pytest.param(
        ["1|F|12|32", "2|F|12|32", "3|S|32"],
        {32: b"1|F|12|32\n2|F|12|32\n", 12: b"3|S|32\n"},
        id="a double follow counts once",
    ),
    pytest.param(
        ["1|F|12|32", "2|F|12|32", "3|U|12|32", "4|S|32"],
        {32: b"1|F|12|32\n2|F|12|32\n"},
        id="one unfollow ends it",
    ),
    pytest.param(
        ["1|F|12|12", "2|S|12"], {12: b"1|F|12|12\n2|S|12\n"}, id="self-follow"
    ),
    pytest.param(["1|P|12|12"], {12: b"1|P|12|12\n"}, id="private to itself"),
    pytest.param(["1|U|60|50", "2|S|50"], {}, id="unfollow without a follow"),
]


@pytest.mark.parametrize(("lines", "expected"), TABLE)
def test_each_event_tells_whom_it_must(
    lines: list[str], expected: dict[int, bytes]
) -> None:
    at_once, singly = Scene(12, 32, 50, 56, 60), Scene(12, 32, 50, 56, 60)

    at_once.route(*lines)
    for line in lines:
        singly.route(line)

    for client in at_once.ears:
        assert at_once.heard(client) == expected.get(client, b""), client
        assert singly.heard(client) == expected.get(client, b""), client


def test_a_client_gathers_once_per_batch():
    scene = Scene(1, 2)

    scene.route("1|P|9|1", "2|P|9|1", "3|B")

    assert scene.ears[1].heard == [b"1|P|9|1\n2|P|9|1\n3|B\n"]
    assert scene.ears[2].heard == [b"3|B\n"]


def test_a_popular_user_costs_no_more_than_there_are_clients():
    scene = Scene(3)
    scene.route(*(f"{n}|F|{n}|7" for n in range(1, 50)))
    scene.router.absent = 0

    scene.route("50|S|7")

    assert scene.heard(3) == b"50|S|7\n"
    assert scene.router.absent == 48


def test_absent_targets_are_counted():
    scene = Scene(1)

    scene.route("1|F|1|2", "2|P|1|3", "3|F|4|1", "4|F|5|1", "5|S|1", "6|U|4|1")

    assert scene.router.absent == 1 + 1 + 2
    assert scene.broker.letters == []


def test_absent_targets_are_stored_if_asked():
    scene = Scene(1, store_absent=True)

    scene.route("1|P|1|3", "2|F|1|2", "3|F|9|2", "4|S|2")

    assert scene.broker.letters == [
        ("client 3 is not connected", b"1|P|1|3\n"),
        ("client 2 is not connected", b"2|F|1|2\n"),
        ("client 2 is not connected", b"3|F|9|2\n"),
        ("1 of 2 followers of 2 are not connected", b"4|S|2\n"),
    ]


def test_what_a_client_did_not_take_counts_as_absent():
    counting, storing = Scene(1), Scene(1, store_absent=True)

    for scene in (counting, storing):
        scene.router.missed(1, [b"1|B\n", b"2|B\n"], "has left")

    assert counting.router.absent == storing.router.absent == 2
    assert counting.broker.letters == []
    assert storing.broker.letters[0] == ("client 1 has left", b"1|B\n")


def test_the_newest_connection_of_a_client_counts():
    scene = Scene(1)
    former, newest = scene.ears[1], Ear()

    scene.router.join(1, newest)
    scene.route("1|B")

    assert former.is_replaced
    assert (former.heard, newest.heard) == ([], [b"1|B\n"])
    assert len(scene.router) == 1


def test_a_replaced_connection_that_leaves_takes_nobody_with_it():
    scene = Scene(1)
    newest = Ear()
    scene.router.join(1, newest)

    scene.router.leave(1, scene.ears[1])
    scene.route("1|B")

    assert newest.heard == [b"1|B\n"]


def test_a_client_that_left_hears_nothing():
    scene = Scene(1)

    scene.router.leave(1, scene.ears[1])
    scene.route("1|P|2|1")

    assert scene.heard(1) == b""
    assert scene.router.absent == 1


def test_a_number_without_an_event_tells_nobody():
    scene = Scene(0)

    scene.router.route([((1, NO_KIND, 0, 0), b"")])

    assert scene.heard(0) == b""
    assert scene.router.absent == 0
