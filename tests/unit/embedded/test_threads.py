from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.embedded.run import HandlerRun
from penstock.embedded.threads import ThreadPool
from tests.unit.embedded.scene import handler_of, job, until


class Work:
    def __init__(
        self, function: Any, count: int, limit: int, ahead: int = 0, name: str = "pool"
    ) -> None:
        handler, clock = handler_of(function), ManualClock()
        self.todo = deque(
            HandlerRun([job(n)], handler, "me", clock) for n in range(count)
        )
        self.ended: list[HandlerRun] = []
        self.pool = ThreadPool(
            asyncio.get_running_loop(),
            limit,
            lambda: ahead,
            lambda: self.todo.popleft() if self.todo else None,
            self.ended.append,
            name,
        )

    @property
    def offsets(self) -> list[int]:
        return sorted(one.jobs[0].offset for one in self.ended)


def threads_of(name: str) -> int:
    return sum(one.name == name for one in threading.enumerate())


def test_calls_are_made_in_threads_up_to_a_number() -> None:
    gate, seen = threading.Event(), []

    def handle(event: Any) -> None:
        seen.append(threading.current_thread().name)
        gate.wait(60)

    async def run() -> None:
        work = Work(handle, 7, limit=3, name="three")
        work.pool.wake()
        await until(lambda: len(seen) == 3)
        begun = len(list(work.pool.running()))
        gate.set()
        await until(lambda: len(work.ended) == 7)

        assert begun == 3
        assert work.offsets == list(range(7))
        assert threads_of("three") <= 3
        assert set(seen) == {"three"}
        await work.pool.stop()
        await until(lambda: threads_of("three") == 0)

    asyncio.run(run())


@pytest.mark.slow
def test_many_short_calls_are_all_made() -> None:
    """A thread that ended too early would leave a call in the inbox for ever."""

    async def run() -> None:
        for limit, ahead in ((1, 0), (1, 5), (3, 0), (3, 20)):
            work = Work(lambda event: None, 2000, limit, ahead)
            work.pool.wake()
            await until(lambda: len(work.ended) == 2000)  # noqa: B023
            assert work.offsets == list(range(2000))
            await work.pool.stop()

    asyncio.run(run())


def test_what_a_handler_raises_does_not_end_its_thread() -> None:
    errors: list[type[BaseException]] = [ValueError, KeyboardInterrupt, SystemExit]

    def handle(event: Any) -> None:
        raise errors[event.offset]

    async def run() -> None:
        work = Work(handle, 3, limit=1, name="raising")
        work.pool.wake()
        await until(lambda: len(work.ended) == 3)

        assert [type(one.error) for one in work.ended] == errors
        assert threads_of("raising") == 1
        await work.pool.stop()

    asyncio.run(run())


def test_another_thread_takes_the_place_of_one_that_is_given_up() -> None:
    gate = threading.Event()

    def handle(event: Any) -> None:
        if event.offset == 0:
            gate.wait(60)

    async def run() -> None:
        work = Work(handle, 4, limit=1, name="given-up")
        work.pool.wake()
        await until(lambda: bool(list(work.pool.running())))
        [first] = work.pool.running()
        first.given_up = True
        work.pool.give_up(first)
        work.pool.wake()
        await until(lambda: len(work.ended) == 3)
        stuck, threads = work.pool.stuck, threads_of("given-up")
        gate.set()
        await until(lambda: work.pool.stuck == 0)
        await until(lambda: threads_of("given-up") == 1)

        assert (stuck, threads) == (1, 2)
        assert work.offsets == [1, 2, 3]
        await work.pool.stop()
        await until(lambda: threads_of("given-up") == 0)

    asyncio.run(run())


def test_a_call_that_was_done_when_it_was_given_up_keeps_its_thread() -> None:
    done = threading.Event()

    async def run() -> None:
        work = Work(lambda event: done.set(), 1, limit=1, name="kept")
        work.pool.wake()
        assert done.wait(60)  # on the loop: it cannot collect meanwhile
        while not work.pool._done:
            pass
        [first] = work.pool.running()
        first.given_up = True
        work.pool.give_up(first)
        await until(lambda: work.pool.stuck == 0)

        assert work.ended == []
        assert threads_of("kept") == 1
        await work.pool.stop()
        await until(lambda: threads_of("kept") == 0)

    asyncio.run(run())


def test_what_waits_for_a_thread_can_be_withdrawn() -> None:
    gate, seen = threading.Event(), []

    def handle(event: Any) -> None:
        seen.append(event.offset)
        gate.wait(60)

    async def run() -> None:
        work = Work(handle, 5, limit=1, ahead=4)
        work.pool.wake()
        await until(lambda: seen == [0])
        back = work.pool.withdraw()
        gate.set()
        await until(lambda: not work.pool.busy)

        assert [one.jobs[0].offset for one in back] == [1, 2, 3, 4]
        assert (seen, work.offsets) == ([0], [0])
        await work.pool.stop()

    asyncio.run(run())


def test_a_thread_may_outlive_its_loop() -> None:
    gate, ended = threading.Event(), threading.Event()

    def handle(event: Any) -> None:
        gate.wait(60)
        ended.set()

    async def run() -> None:
        work = Work(handle, 1, limit=1, name="outlives")
        work.pool.wake()
        await until(lambda: bool(list(work.pool.running())))
        await work.pool.stop()

    asyncio.run(run())
    gate.set()

    assert ended.wait(60)
    for thread in threading.enumerate():
        if thread.name == "outlives":
            thread.join(60)


def test_a_mistake_of_ours_costs_no_thread(caplog: pytest.LogCaptureFixture) -> None:
    def handle(event: Any) -> None: ...

    async def run() -> None:
        work = Work(handle, 5, limit=1)
        given, mistakes, told = work.pool._next_run, [RuntimeError("ours")], []

        def next_run() -> HandlerRun | None:
            if len(work.todo) == 2 and mistakes:
                raise mistakes.pop()
            return given()

        def ended(ended: HandlerRun) -> None:
            told.append(ended.jobs[0].offset)
            if len(told) == 1:
                raise RuntimeError("ours")

        work.pool._next_run, work.pool._ended = next_run, ended
        work.pool.wake()
        await until(lambda: len(told) == 3)
        work.pool.wake()  # as the next tick does
        await until(lambda: len(told) == 5)
        await work.pool.stop()

        assert told == [0, 1, 2, 3, 4]

    asyncio.run(run())
    actions = [one.__dict__["action"] for one in caplog.records]
    assert actions == ["handler_slipped", "handler_slipped"]
