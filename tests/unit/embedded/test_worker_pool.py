from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.embedded.run import HandlerRun
from penstock.embedded.worker_pool import TaskPool
from tests.unit.embedded.scene import handler_of, job, turns


class Work:
    """Calls that wait to be made, and those that have ended."""

    def __init__(self, function: Any, count: int, limit: int) -> None:
        handler, clock = handler_of(function), ManualClock()
        self.todo = deque(
            HandlerRun([job(n)], handler, "me", clock) for n in range(count)
        )
        self.ended: list[HandlerRun] = []
        self.pool = TaskPool(
            asyncio.get_running_loop(),
            limit,
            lambda: bool(self.todo),
            lambda: self.todo.popleft() if self.todo else None,
            self.ended.append,
        )

    @property
    def offsets(self) -> list[int]:
        return [one.jobs[0].offset for one in self.ended]


def test_calls_that_do_not_wait_are_made_one_behind_the_other() -> None:
    async def handle(event: Any) -> None: ...

    async def run() -> None:
        work = Work(handle, 20, limit=4)
        work.pool.wake()
        await turns()

        assert work.offsets == list(range(20))
        assert not work.pool.busy

    asyncio.run(run())


def test_as_many_run_at_once_as_are_allowed() -> None:
    gate = asyncio.Event()

    async def handle(event: Any) -> None:
        await gate.wait()

    async def run() -> None:
        work = Work(handle, 5, limit=3)
        work.pool.wake()
        await turns()
        at_once = len(list(work.pool.running()))
        gate.set()
        await turns()

        assert at_once == 3
        assert sorted(work.offsets) == [0, 1, 2, 3, 4]
        assert list(work.pool.running()) == []

    asyncio.run(run())


def test_what_a_handler_raises_does_not_end_its_task() -> None:
    errors: list[type[BaseException]] = [
        ValueError,
        KeyboardInterrupt,
        SystemExit,
        asyncio.CancelledError,
    ]

    async def handle(event: Any) -> None:
        raise errors[event.offset]

    async def run() -> None:
        work = Work(handle, 4, limit=1)
        work.pool.wake()
        await turns()

        assert [type(one.error) for one in work.ended] == errors

    asyncio.run(run())


def test_a_call_that_is_given_up_is_cancelled_and_replaced() -> None:
    cancelled = []

    async def handle(event: Any) -> None:
        if event.offset == 0:
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.append(event.offset)

    async def run() -> None:
        work = Work(handle, 3, limit=1)
        work.pool.wake()
        await turns()
        [first] = work.pool.running()
        first.given_up = True
        work.pool.give_up(first)
        stuck = work.pool.stuck
        work.pool.wake()
        await turns()

        assert (stuck, work.pool.stuck) == (1, 0)
        assert cancelled == [0]
        assert work.offsets == [1, 2]
        assert not work.pool.busy

    asyncio.run(run())


def test_a_call_that_swallows_its_cancellation_is_stuck_until_it_ends() -> None:
    gate = asyncio.Event()

    async def handle(event: Any) -> None:
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue

    async def run() -> None:
        work = Work(handle, 1, limit=1)
        work.pool.wake()
        await turns()
        [first] = work.pool.running()
        first.given_up = True
        work.pool.give_up(first)
        await turns()
        stuck = work.pool.stuck
        gate.set()
        await turns()

        assert (stuck, work.pool.stuck) == (1, 0)
        assert work.ended == []

    asyncio.run(run())


def test_stopping_cancels_what_runs_and_tells_nobody() -> None:
    async def handle(event: Any) -> None:
        await asyncio.Event().wait()

    async def run() -> None:
        work = Work(handle, 5, limit=2)
        work.pool.wake()
        await turns()
        await work.pool.stop()
        work.pool.wake()
        await turns()

        assert work.ended == []
        assert len(work.todo) == 3
        assert work.pool.withdraw() == []

    asyncio.run(run())


def test_stopping_before_anything_began_begins_nothing() -> None:
    async def handle(event: Any) -> None: ...

    async def run() -> None:
        work = Work(handle, 5, limit=2)
        work.pool.wake()
        starting = work.pool.starting
        await work.pool.stop()
        await turns()

        assert starting == 1
        assert len(work.todo) == 5

    asyncio.run(run())


def test_a_mistake_of_ours_costs_no_worker(caplog: pytest.LogCaptureFixture) -> None:
    async def handle(event: Any) -> None: ...

    async def run() -> None:
        work = Work(handle, 4, limit=1)
        told: list[int] = []

        def ended(ended: HandlerRun) -> None:
            told.append(ended.jobs[0].offset)
            if len(told) == 2:
                raise RuntimeError("ours")

        work.pool._ended = ended
        work.pool.wake()
        await turns()

        assert told == [0, 1, 2, 3]
        assert not work.pool.busy

    asyncio.run(run())
    assert [one.__dict__["action"] for one in caplog.records] == ["handler_slipped"]


def test_a_call_that_cannot_be_made_is_asked_for_again_later() -> None:
    async def handle(event: Any) -> None: ...

    async def run() -> None:
        work = Work(handle, 2, limit=1)
        given = work.pool._next_run
        mistakes = [RuntimeError("ours")]

        def next_run() -> HandlerRun | None:
            if mistakes:
                raise mistakes.pop()
            return given()

        work.pool._next_run = next_run
        work.pool.wake()
        await turns()
        before = list(work.offsets)
        work.pool.wake()  # as the next tick does
        await turns()

        assert (before, work.offsets) == ([], [0, 1])

    asyncio.run(run())
