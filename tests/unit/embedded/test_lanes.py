"""More in tests/properties/test_embedded_lanes.py."""

from __future__ import annotations

from penstock.embedded.job import Job
from penstock.embedded.lanes import Lanes
from tests.unit.embedded.scene import job


def offsets(lanes: Lanes[Job]) -> list[int]:
    return [one.offset for one in lanes.ready]


def test_only_the_first_of_a_lane_is_ready() -> None:
    lanes: Lanes[Job] = Lanes(ordered=True)

    lanes.add([job(0, lane="a"), job(1, lane="b"), job(2, lane="a")])

    assert offsets(lanes) == [0, 1]
    assert lanes.held == 1


def test_the_next_of_a_lane_follows_when_the_first_is_finished() -> None:
    lanes: Lanes[Job] = Lanes(ordered=True)
    lanes.add([job(0, lane="a"), job(1, lane="a"), job(2, lane="a")])
    first = lanes.ready.popleft()

    lanes.finish(first)

    assert offsets(lanes) == [1]
    assert lanes.held == 1


def test_a_lane_waits_while_its_first_waits_for_another_try() -> None:
    lanes: Lanes[Job] = Lanes(ordered=True)
    lanes.add([job(0, lane="a"), job(1, lane="a")])
    lanes.ready.popleft()

    lanes.add([job(2, lane="a")])
    assert offsets(lanes) == []
    lanes.add([job(0, lane="a", tries=2)])

    assert offsets(lanes) == [0]
    assert lanes.blocked() == {"a": 0}


def test_a_lane_goes_on_without_a_first_that_never_comes_again() -> None:
    lanes: Lanes[Job] = Lanes(ordered=True)
    lanes.add([job(0, lane="a"), job(1, lane="a")])
    lanes.ready.popleft()

    lanes.unblock("a")

    assert offsets(lanes) == [1]


def test_a_lane_that_is_empty_is_forgotten() -> None:
    lanes: Lanes[Job] = Lanes(ordered=True)
    lanes.add([job(0, lane="a")])

    lanes.finish(lanes.ready.popleft())

    assert lanes.blocked() == {}
    lanes.add([job(5, lane="a")])
    assert offsets(lanes) == [5]


def test_draining_gives_everything_back() -> None:
    lanes: Lanes[Job] = Lanes(ordered=True)
    lanes.add([job(n, lane=n % 2) for n in range(6)])
    running = lanes.ready.popleft()

    drained = lanes.drain()

    assert sorted(one.offset for one in [running, *drained]) == list(range(6))
    assert (offsets(lanes), lanes.held) == ([], 0)
    lanes.forget()
    assert lanes.blocked() == {}


def test_what_comes_while_it_is_paused_waits() -> None:
    lanes: Lanes[Job] = Lanes(ordered=True)
    lanes.add([job(0, lane="a"), job(1, lane="a")])
    lanes.ready.popleft()

    lanes.pause()
    lanes.add([job(1, lane="a"), job(2, lane="b")])
    assert lanes.paused
    assert offsets(lanes) == []

    lanes.resume()
    assert bool(lanes.paused) is False
    assert offsets(lanes) == [1, 2]
    assert lanes.held == 0


def test_what_waits_while_it_is_paused_can_be_given_back() -> None:
    lanes: Lanes[Job] = Lanes(ordered=False)
    lanes.pause()
    lanes.add([job(1)])

    assert [one.offset for one in lanes.drain()] == [1]
    lanes.resume()
    assert offsets(lanes) == []


def test_a_call_is_for_one_event_or_for_those_that_never_failed() -> None:
    lanes: Lanes[Job] = Lanes(ordered=False)
    lanes.add([job(0), job(1), job(2), job(3, tries=2), job(4)])

    picked = [[one.offset for one in lanes.pick(batch)] for batch in (0, 9, 9, 9)]

    assert picked == [[0], [1, 2], [3], [4]]
