from __future__ import annotations

import logging
from typing import Any

import pytest

from penstock.broker.broker import Broker as RealBroker
from penstock.broker.publishing import Accepted
from penstock.errors import Backlogged, BeingDeleted
from penstock.gateway.gateway import Gateway
from penstock.gateway.maze import MazeClient, MazeHub, MazeSource, MazeState, hub
from penstock.gateway.options import MazeOptions
from penstock.log import Columns, Owner
from tests.unit.gateway.maze.scene import Maze


def gateways(broker: RealBroker, options: MazeOptions) -> list[Gateway]:
    """Judged by the types: what is real fits what the maze says it wants."""
    maze = MazeHub(broker, MazeState(), options)
    return [MazeSource(maze), MazeClient(maze)]


def owner() -> Owner:
    return MazeState()


def with_history(*clients: int, **options: Any) -> Maze:
    """A maze that a source brought to number 3, and a new source."""
    maze = Maze(*clients, **options)
    maze.send("1|F|1|2", "2|F|3|2")
    maze.end_source()
    maze.got = dict.fromkeys(maze.got, b"")
    maze.new_source()
    return maze


def actions(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.__dict__["action"] for record in caplog.records]


def test_all_that_connect_are_gateways_without_a_login():
    source, client = MazeSource(Maze().hub), Maze(1).clients[1]

    assert (source.login, client.login) == (None, None)
    assert (source.settled, client.settled) == (True, True)
    assert not Maze().connect().settled


def test_one_receive_is_one_publish_in_the_order_of_processing():
    maze = Maze()

    maze.send("3|B", "1|S|7", "2|P|1|2")

    assert len(maze.broker.batches) == 1
    assert maze.broker.published == [b"1|S|7", b"2|P|1|2", b"3|B"]
    assert maze.broker.batches[0].timestamps() == [1_000_000] * 3
    assert maze.broker.batches[0].topic == "maze"


def test_nothing_ready_is_not_published():
    maze = Maze()

    maze.send("2|B")

    assert maze.broker.batches == []


def test_clients_are_told_even_if_they_register_before_nobody_follows():
    maze = Maze()
    maze.send("1|F|9|5")
    maze.join(9)

    maze.send("2|S|5")

    assert maze.got[9] == b"2|S|5\n"


@pytest.mark.parametrize(
    "line", ["", "hello", "x|B", "0|B", "-4|B", "|||", "\x00\xff", "1" * 30 + "|B"]
)
def test_a_line_without_a_number_is_a_dead_letter_and_uses_none_up(line: str) -> None:
    maze = Maze(1)

    maze.send("1|B", line, "2|B")

    assert maze.got[1] == b"1|B\n2|B\n"
    assert maze.broker.letters[0][1] == line.encode() + b"\n"


@pytest.mark.parametrize("line", ["2|X|1|2", "2", "2|F|1", "2|B|7", "2|P|a|b", "2|"])
def test_a_line_with_a_number_uses_it_up_whatever_else_is_wrong(line: str) -> None:
    maze = Maze(1)

    maze.send("1|B", "3|B", line)

    assert maze.got[1] == b"1|B\n3|B\n"
    assert [raw for _, raw in maze.broker.letters] == [line.encode() + b"\n"]
    assert maze.broker.published == [b"1|B", b"3|B"]
    assert maze.state.expected == 4


def test_an_unknown_type_twice_is_one_letter_each():
    maze = Maze()

    maze.send("1|X", "1|X")

    assert len(maze.broker.letters) == 2


@pytest.mark.parametrize("again", ["1|B", "2|B", "5|B"])
def test_old_and_double_numbers_are_dead_letters(again: str) -> None:
    maze = Maze(1)
    maze.send("1|B", "2|B", "5|B")

    maze.send(again)

    assert maze.got[1] == b"1|B\n2|B\n"
    [(reason, raw)] = maze.broker.letters
    assert reason.startswith(f"number {again[0]} is old or came twice")
    assert raw == again.encode() + b"\n"


def test_a_full_hold_back_skips_the_gap_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    maze = Maze(1, hold_back=2)

    maze.send("4|B", "5|B", "6|B")

    assert maze.got[1] == b"4|B\n5|B\n6|B\n"
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    fields = record.__dict__
    assert fields["action"] == "maze_gap_skipped"
    assert (fields["first"], fields["last"], fields["missing"]) == (1, 3, 3)


def test_gaps_again_and_again_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    maze = Maze(hold_back=2)
    for number in range(10, 1000, 10):
        maze.send(*(f"{number + more}|B" for more in range(3)))
    maze.broker.throttle.close()

    assert [vars(record)["count"] for record in caplog.records] == [1, 98]


def test_an_old_gap_is_skipped_by_a_tick_and_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    maze = Maze(1, gap_s=5.0)
    maze.send("2|B", "4|B")

    maze.wait(4.9)
    assert maze.got[1] == b""
    maze.wait(0.1)

    assert maze.got[1] == b"2|B\n4|B\n"
    [record] = caplog.records
    assert record.__dict__["first"] == 1
    assert record.__dict__["last"] == 3
    assert record.__dict__["missing"] == 2
    assert maze.broker.published == [b"2|B", b"4|B"]


def test_the_end_of_the_source_lets_out_what_was_held_in_order(
    caplog: pytest.LogCaptureFixture,
) -> None:
    maze = Maze(1)
    maze.send("5|B", "3|B", "1|B")

    maze.end_source()

    assert maze.got[1] == b"1|B\n3|B\n5|B\n"
    assert actions(caplog) == ["maze_gap_skipped"]
    assert maze.state.expected == 6


def test_a_first_source_need_not_wait_to_be_understood():
    maze = Maze(1)

    maze.send("1|B")

    assert maze.got[1] == b"1|B\n"


def test_a_new_source_that_sends_number_one_starts_afresh(
    caplog: pytest.LogCaptureFixture,
) -> None:
    maze = with_history(1)

    with caplog.at_level(logging.INFO):
        maze.send("3|S|2", "2|P|9|1")
        assert maze.got[1] == b""
        maze.send("1|F|7|8")

    assert maze.got[1] == b"2|P|9|1\n"
    assert maze.state.followers.graph == {8: {7}}
    assert maze.state.expected == 4
    assert maze.broker.letters == []
    assert actions(caplog) == ["maze_restarted"]


def test_a_new_source_without_number_one_goes_on_after_the_window():
    maze = with_history(1, restart_window=3)

    maze.send("5|S|2", "4|P|9|1")
    assert maze.got[1] == b""
    maze.send("3|P|9|1", "6|P|9|1")

    assert maze.got[1] == b"3|P|9|1\n4|P|9|1\n5|S|2\n6|P|9|1\n"
    assert maze.state.followers.graph == {2: {1, 3}}


def test_a_new_source_without_number_one_goes_on_after_its_time():
    maze = with_history(1, gap_s=5.0)
    maze.send("3|P|9|1", "2|P|9|1")

    maze.wait(4.9)
    assert maze.got[1] == b""
    maze.wait(0.1)

    assert maze.got[1] == b"3|P|9|1\n"
    assert maze.broker.letters == [
        ("number 2 is old or came twice, next is 4", b"2|P|9|1\n")
    ]


def test_a_new_source_that_is_silent_may_still_start_afresh():
    maze = with_history(1, gap_s=5.0)
    maze.wait(100.0)

    maze.send("2|B", "1|B")

    assert maze.got[1] == b"1|B\n2|B\n"


def test_a_new_source_that_ends_at_once_went_on():
    maze = with_history(1)
    maze.send("4|B")

    maze.end_source()

    assert maze.got[1] == b"4|B\n"
    assert maze.state.followers.graph == {2: {1, 3}}


def test_number_one_behind_the_window_is_old():
    maze = with_history(1, restart_window=2)

    maze.send("3|B", "4|B", "1|B")

    assert maze.got[1] == b"3|B\n4|B\n"
    assert len(maze.broker.letters) == 1


def test_a_source_may_come_and_go_many_times():
    maze = Maze(1)
    for _ in range(3):
        maze.send("2|B", "1|B")
        maze.end_source()
        maze.new_source()

    assert maze.got[1] == b"1|B\n2|B\n" * 3
    assert maze.broker.published == [b"1|B", b"2|B"] * 3


def test_a_restarted_process_knows_followers_and_numbers():
    before = Maze()
    before.send("1|F|1|2", "2|F|3|2")
    state = MazeState()
    state.catch_up(before.broker.batches)

    maze = Maze(1, 3, state=state, restart_window=1)
    maze.send("3|S|2")

    assert maze.got == {1: b"3|S|2\n", 3: b"3|S|2\n"}


def test_applied_follows_the_topic():
    maze = Maze()

    maze.send("1|B", "2|B")
    maze.send("4|B")
    maze.send("3|X")

    assert maze.state.applied == maze.broker.end == 3


def test_events_wait_for_a_log_that_is_behind_and_clients_do_not():
    maze = Maze(1)
    maze.broker.behind = True

    maze.send("1|B")
    maze.send("2|B")
    waited = maze.hub.backlogged
    assert maze.got[1] == b"1|B\n2|B\n"
    maze.broker.behind = False
    maze.wait(1.0)

    assert (waited, maze.hub.backlogged) == (True, False)
    assert maze.broker.published == [b"1|B", b"2|B"]
    assert maze.state.applied == 2


def test_events_wait_while_their_topic_is_being_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    maze = Maze(1)

    def going(topic: str, columns: Columns) -> Accepted:
        raise BeingDeleted(topic)

    with monkeypatch.context() as patched:
        patched.setattr(maze.broker, "accept", going)
        maze.send("1|B")
    maze.wait(1.0)

    assert maze.broker.published == [b"1|B"]


def test_dead_letters_wait_for_a_log_that_is_behind():
    maze = Maze(1)
    maze.broker.behind = True

    maze.send("junk", "1|B", "1|B")
    waited = maze.hub.backlogged
    maze.broker.behind = False
    maze.wait(1.0)

    assert (waited, maze.hub.backlogged) == (True, False)
    assert maze.got[1] == b"1|B\n"
    assert [raw for _, raw in maze.broker.letters] == [b"junk\n", b"1|B\n"]


def test_what_waits_for_the_log_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MAX_UNPUBLISHED", 2)
    maze = Maze()
    maze.broker.behind = True
    maze.send("1|B", "2|B")

    with pytest.raises(Backlogged):
        maze.send("3|B")


def test_a_quiet_tick_does_nothing():
    maze = Maze(1)

    maze.wait(100.0)

    assert maze.broker.batches == []
    assert maze.broker.awake == {}


def test_what_does_not_fit_the_schema_of_the_topic_is_a_dead_letter() -> None:
    maze = Maze(1, 2)
    maze.broker.unfit = {b"2|F|2|1"}

    maze.send("1|F|1|2", "2|F|2|1", "3|B")

    assert maze.broker.published == [b"1|F|1|2", b"3|B"]
    ((reason, raw),) = maze.broker.letters
    assert (raw, "does not fit version 1" in reason) == (b"2|F|2|1", True)
    assert not maze.hub.backlogged
    maze.broker.unfit = {b"4|B"}
    maze.send("4|B")
    assert len(maze.broker.letters) == 2
