from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest
import uvloop

from penstock.testing import VirtualClock
from penstock.testing.timers import (
    CALL,
    HandlerCall,
    Timer,
    VirtualTimers,
    install,
    uninstall,
)

HOUR_S = 3600.0
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


class Virtual:
    """A loop with virtual time for what is called by ``handler``."""

    def __init__(self) -> None:
        self.clock = VirtualClock(0.0)
        self.timers = VirtualTimers(self.clock, lambda: None)
        self.call = HandlerCall(self.timers)

    def handler(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        async def called() -> Any:
            CALL.set(self.call)
            return await coroutine

        return asyncio.get_running_loop().create_task(called())

    async def move(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.timers.fire(self.clock.now_s())
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Runs a test on a loop with virtual time, and sees to it that it is put back."""

    def run_it(test: Callable[[Virtual], Coroutine[Any, Any, Any]]) -> Any:
        async def whole() -> Any:
            loop = asyncio.get_running_loop()
            install(loop)
            try:
                return await test(Virtual())
            finally:
                uninstall(loop)
                assert not vars(loop).keys() & {"time", "call_at", "call_later"}

        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            return runner.run(whole())

    return run_it


def test_a_handler_sleeps_until_the_clock_is_moved(run: Callable[..., Any]) -> None:
    async def test(virtual: Virtual) -> None:
        task = virtual.handler(asyncio.sleep(HOUR_S, "rested"))
        await virtual.move(0)  # so that it begins
        await virtual.move(HOUR_S - 1)
        assert not task.done()
        assert virtual.timers.sleepers() == {virtual.call}
        assert virtual.timers.next_s() == HOUR_S

        await virtual.move(1)

        assert task.result() == "rested"
        assert virtual.timers.sleepers() == set()

    run(test)


def test_timeouts_of_handlers_are_virtual_too(run: Callable[..., Any]) -> None:
    async def hurried() -> str:
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        try:
            async with asyncio.timeout(HOUR_S):
                await asyncio.Event().wait()
        except TimeoutError:
            return f"{loop.time() - begin_s:g}"
        return "never"

    async def test(virtual: Virtual) -> None:
        task = virtual.handler(hurried())
        await virtual.move(0)  # so that it begins
        await virtual.move(HOUR_S - 1)
        assert not task.done()
        assert virtual.timers.sleepers() == set(), "it may wait for something else"

        await virtual.move(1)

        assert task.result() == "3600"

    run(test)


def test_everybody_else_has_real_time(run: Callable[..., Any]) -> None:
    async def test(virtual: Virtual) -> None:
        loop = asyncio.get_running_loop()
        fired = asyncio.Event()
        loop.call_at(loop.time(), fired.set)
        await fired.wait()

        await asyncio.sleep(0.001)

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        assert virtual.timers.next_s() is None

    run(test)


def test_a_sleep_that_is_cancelled_is_not_waited_for(run: Callable[..., Any]) -> None:
    async def test(virtual: Virtual) -> None:
        task = virtual.handler(asyncio.sleep(HOUR_S))
        await virtual.move(0)

        task.cancel()
        await asyncio.wait([task])

        assert virtual.timers.next_s() is None

    run(test)


def test_a_loop_keeps_virtual_time_until_the_last_one_leaves() -> None:
    async def test() -> list[bool]:
        loop = asyncio.get_running_loop()
        install(loop)
        install(loop)
        uninstall(loop)
        after_one = "call_at" in vars(loop)
        uninstall(loop)
        return [after_one, "call_at" in vars(loop)]

    assert asyncio.run(test()) == [True, False]


def test_a_thread_sleeps_until_the_clock_is_moved() -> None:
    stirred = threading.Event()
    clock = VirtualClock(0.0)
    timers = VirtualTimers(clock, stirred.set)
    call = HandlerCall(timers)
    thread = threading.Thread(target=timers.sleep_blocking, args=(call, HOUR_S))
    thread.start()
    assert stirred.wait(60)
    assert timers.sleepers() == {call}

    timers.fire(HOUR_S)

    thread.join(10)
    assert not thread.is_alive()


def test_what_is_due_is_done_in_the_order_of_its_moments() -> None:
    timers = VirtualTimers(VirtualClock(0.0), lambda: None)
    call = HandlerCall(timers)
    done: list[int] = []
    for at_s in (3, 1, 2, 4):
        timers.add(Timer(at_s, partial(done.append, at_s), call, sleeps=False))

    timers.fire(3)

    assert done == [1, 2, 3]
    assert timers.next_s() == 4


def test_a_call_that_hung_does_not_hang_once_its_moment_came() -> None:
    timers = VirtualTimers(VirtualClock(0.0), lambda: None)
    call = HandlerCall(timers)
    call.hangs = True
    timers.add(Timer(1.0, time.monotonic, call, sleeps=False))

    timers.fire(1.0)

    assert not call.hangs
