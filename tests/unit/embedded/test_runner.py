from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from penstock.embedded import runner as runner_module
from penstock.embedded.context import Context
from penstock.embedded.event import Event
from penstock.embedded.topic import Topic
from penstock.errors import GiveUp, InvalidBatch
from tests.unit.embedded.scene import Stage, job, turns, until


def test_what_is_handled_is_finished_with_what_it_published() -> None:
    async def handle(event: Any, context: Any) -> None:
        if event.offset == 1:
            context.publish("out", b"x")

    async def run() -> None:
        stage = Stage(handle)
        stage.runner.arrived([job(0), job(1)])
        await stage.idle()

        assert stage.channel.finished == [0, 1]
        assert [one.parent for one in stage.channel.intents] == ["e1"]
        assert (stage.runner.handled, stage.runner.failed) == (2, 0)

    asyncio.run(run())


def test_what_fails_is_refused_and_not_finished() -> None:
    async def handle(event: Any, context: Any) -> None:
        context.publish("out", b"x")
        raise ValueError("no")

    async def run() -> None:
        stage = Stage(handle)
        stage.runner.arrived([job(4, tries=2)])
        await stage.idle()

        [(offset, failure, final)] = stage.channel.refused
        assert (offset, failure.kind, failure.tries, final) == (
            4,
            "ValueError",
            2,
            False,
        )
        assert not stage.channel.finished
        assert not stage.channel.intents
        assert stage.runner.failed == 1

    asyncio.run(run())


def test_a_payload_that_does_not_fit_is_refused_for_good() -> None:
    async def handle(event: Any) -> None: ...

    async def run() -> None:
        stage = Stage(handle, topic=Topic("t", int))
        stage.runner.arrived([job(0, b"1"), job(1, b"one"), job(2, b"2")])
        await stage.idle()

        assert stage.channel.finished == [0, 2]
        [(offset, failure, final)] = stage.channel.refused
        assert (offset, failure.kind, final) == (1, "UnfitPayload", True)

    asyncio.run(run())


def test_a_handler_may_say_that_no_other_try_can_be_better() -> None:
    async def handle(event: Any) -> None:
        raise GiveUp("no such customer")

    async def run() -> None:
        stage = Stage(handle)
        stage.runner.arrived([job(0)])
        await stage.idle()

        assert [final for _, _, final in stage.channel.refused] == [True]

    asyncio.run(run())


def test_what_the_filter_does_not_want_is_settled_at_once() -> None:
    seen = []

    async def handle(event: Any) -> None:
        seen.append(event.offset)

    async def run() -> None:
        stage = Stage(handle, keys=[b"a"])
        stage.runner.arrived([job(0, lane=b"a"), job(1, lane=b"b")])
        finished = list(stage.channel.finished)
        await stage.idle()

        assert finished == [1]
        assert seen == [0]

    asyncio.run(run())


def test_time_runs_out_with_the_tick() -> None:
    cancelled = []

    async def handle(event: Any) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(event.offset)
            raise

    async def run() -> None:
        stage = Stage(handle, timeout_s=3.0)
        stage.runner.arrived([job(0)])
        await turns()
        due_s = stage.runner.next_s()
        assert due_s is not None
        stage.tick(3.0)
        in_time = list(stage.channel.refused)
        stage.clock.advance(due_s - stage.clock.now_s())
        stage.tick(0.001)
        await turns()

        assert in_time == []
        [(_, failure, _)] = stage.channel.refused
        assert failure.kind == "Timeout"
        assert cancelled == [0]
        assert stage.runner.idle and not stage.runner.running()

    asyncio.run(run())


def test_a_handler_that_is_stuck_too_often_gets_no_more(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runner_module, "MAX_STUCK", 2)
    gate = threading.Event()

    def handle(event: Any) -> None:
        gate.wait(60)

    async def run() -> None:
        stage = Stage(handle, concurrency=2)
        stage.runner.arrived([job(0), job(1)])
        await until(lambda: len(stage.runner.running()) == 2)
        before = stage.runner.room()
        with caplog.at_level(logging.ERROR):
            stage.tick(6)
            stage.tick(0)
        stuck = stage.runner.room()
        gate.set()
        await until(lambda: stage.runner.room() > 0)
        woken = stage.channel.woken
        stage.tick(0)

        assert (before, stuck) == (0, 0)
        assert len(stage.channel.refused) == 2
        assert [vars(one)["action"] for one in caplog.records] == ["handler_stuck"]
        assert stage.channel.woken == woken + 1
        await stage.runner.close(0.0)

    asyncio.run(run())


def test_a_slow_handler_has_as_much_at_hand_as_it_handles_at_once() -> None:
    async def handle(event: Any) -> None: ...

    async def run() -> None:
        stages = [
            Stage(handle, concurrency=4),
            Stage(handle, order="strict"),
            Stage(handle, order="key", concurrency=4),
            Stage(handle, batch=10, concurrency=2),
        ]

        assert [one.runner.room() for one in stages] == [4, 1, 32, 40]
        stages[0].runner.arrived([job(n) for n in range(3)])
        assert stages[0].runner.room() == 1
        await stages[0].idle()

    asyncio.run(run())


def test_a_fast_handler_has_more_at_hand() -> None:
    async def handle(event: Any) -> None: ...

    async def run() -> None:
        stage = Stage(handle, concurrency=1)
        before = stage.runner.room()
        for offset in range(200):
            stage.runner.arrived([job(offset)])
            await stage.idle()

        assert before == 1
        assert stage.runner.room() > 100

    asyncio.run(run())


def test_events_that_failed_before_are_tried_alone() -> None:
    sizes = []

    async def handle(events: list[Any]) -> None:
        sizes.append([one.offset for one in events])

    async def run() -> None:
        stage = Stage(handle, batch=3, concurrency=1)
        tries = [1, 1, 2, 2, 1, 1, 1, 1]
        stage.runner.arrived([job(n, tries=count) for n, count in enumerate(tries)])
        await stage.idle()

        assert sizes == [[0, 1], [2], [3], [4, 5, 6], [7]]
        assert stage.channel.finished == list(range(8))

    asyncio.run(run())


def test_a_lane_goes_on_only_behind_what_is_settled_or_given_up() -> None:
    seen = []

    async def handle(event: Any, context: Any) -> None:
        seen.append((event.offset, context.tries))
        if event.offset == 0:
            raise ValueError

    async def run() -> None:
        stage = Stage(handle, order="strict", tries=2)
        stage.runner.arrived([job(0), job(1)])
        await turns()
        first = list(seen)
        stage.runner.arrived([job(0, tries=2)])
        await stage.idle()

        assert first == [(0, 1)]
        assert seen == [(0, 1), (0, 2), (1, 1)]

    asyncio.run(run())


def test_a_lane_goes_on_when_its_first_event_is_not_owed_any_more() -> None:
    seen = []

    async def handle(event: Any) -> None:
        seen.append(event.offset)
        if event.offset == 0:
            raise ValueError

    async def run() -> None:
        stage = Stage(handle, order="strict")
        stage.runner.arrived([job(0), job(1)])
        await turns()
        stage.tick()
        before = list(seen)
        stage.channel.gone = {0}
        stage.tick()
        await turns()

        assert (before, seen) == ([0], [0, 1])

    asyncio.run(run())


def test_what_could_not_be_published_is_a_failed_try() -> None:
    async def handle(event: Any) -> None: ...

    async def run() -> None:
        stage = Stage(handle, order="strict")
        stage.runner.arrived([job(0), job(1)])
        stage.runner.could_not_publish(job(0), InvalidBatch("key", "x", "y"))

        [(offset, failure, final)] = stage.channel.refused
        assert (offset, failure.kind, final) == (0, "InvalidBatch", False)

    asyncio.run(run())


def test_closing_gives_back_what_was_not_begun() -> None:
    gate = asyncio.Event()

    async def handle(event: Any) -> None:
        await gate.wait()

    async def run() -> None:
        stage = Stage(handle, order="key", concurrency=1)
        stage.runner.arrived([job(n, lane=b"k") for n in range(3)])
        await turns()
        closing = asyncio.create_task(stage.runner.close(10.0))
        await turns()
        stage.runner.arrived([])
        gate.set()
        await closing

        assert stage.channel.back == [1, 2]
        assert stage.channel.finished == [0]
        assert stage.channel.closed
        assert stage.runner.room() == 0

    asyncio.run(run())


def test_closing_stops_what_does_not_end_in_time() -> None:
    async def handle(event: Any) -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        stage = Stage(handle)
        stage.runner.arrived([job(0)])
        await turns()
        await stage.runner.close(0.0)

        assert stage.channel.closed
        assert not stage.channel.finished
        assert not stage.channel.refused
        assert stage.channel.back == []

    asyncio.run(run())


def test_a_lost_subscription_waits_for_what_runs_and_forgets_the_rest() -> None:
    gate, seen = asyncio.Event(), []

    async def handle(event: Any) -> None:
        seen.append(event.offset)
        await gate.wait()

    async def run() -> None:
        stage = Stage(handle, order="strict")
        stage.runner.arrived([job(0), job(1)])
        await turns()
        resetting = asyncio.create_task(stage.runner.reset())
        await turns()
        waits = not resetting.done()
        gate.set()
        await resetting
        stage.runner.arrived([job(0, tries=2), job(1, tries=2)])
        await stage.idle()

        assert waits
        assert seen == [0, 0, 1]

    asyncio.run(run())


def test_an_abandoned_runner_tells_nobody() -> None:
    async def handle(event: Any) -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        stage = Stage(handle)
        stage.runner.arrived([job(0)])
        await turns()
        await stage.runner.abandon()

        channel = stage.channel
        assert not channel.finished
        assert not channel.refused
        assert not channel.back
        assert not channel.closed

    asyncio.run(run())


@pytest.mark.parametrize("order", ["parallel", "key", "strict"])
def test_a_move_forgets_what_waits_and_what_becomes_of_what_runs(order: Any) -> None:
    seen: list[int] = []
    gate = asyncio.Event()

    async def handle(event: Event[bytes], context: Context) -> None:
        seen.append(event.offset)
        context.publish("out", b"x")
        await gate.wait()

    async def run() -> None:
        stage = Stage(handle, order=order, concurrency=1)
        stage.runner.arrived([job(0, lane="a"), job(1, lane="a")])
        await turns()

        stage.runner.moved()
        room = stage.runner.room()
        stage.runner.arrived([job(0, lane="a")])  # it comes anew
        await turns()
        assert (seen, room, stage.runner.idle) == ([0], 0, False)

        gate.set()
        await stage.idle()
        assert seen == [0, 0]
        assert stage.channel.finished == [0]
        assert len(stage.channel.intents) == 1
        assert stage.runner.handled == 1
        assert stage.channel.woken

    asyncio.run(run())


def test_a_call_from_before_a_move_that_takes_too_long_is_no_failure() -> None:
    async def handle(event: Any) -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        stage = Stage(handle, timeout_s=1.0)
        stage.runner.arrived([job(0)])
        await turns()
        stage.runner.moved()

        stage.tick(2.0)

        assert stage.runner.idle
        assert stage.channel.refused == []
        assert stage.runner.room() > 0

    asyncio.run(run())
