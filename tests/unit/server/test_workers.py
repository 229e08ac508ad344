from __future__ import annotations

import asyncio
import threading
from functools import partial

from penstock.server.engine import Worker
from tests.unit.server.scene import run


def test_work_is_done_in_its_thread_and_told_in_the_loop() -> None:
    async def scene() -> None:
        worker = Worker(asyncio.get_running_loop(), "penstock-test")
        done = asyncio.Event()
        where: list[str] = []

        def work() -> None:
            where.append(threading.current_thread().name)

        def told() -> None:
            where.append(threading.current_thread().name)
            done.set()

        worker.submit(work, told)
        await done.wait()
        worker.stop()

        assert where == ["penstock-test", threading.main_thread().name]

    run(scene())


def test_pieces_of_work_follow_each_other_and_the_thread_ends() -> None:
    async def scene() -> None:
        worker = Worker(asyncio.get_running_loop(), "penstock-test")
        done = asyncio.Event()
        order: list[int] = []

        for number in range(9):
            worker.submit(partial(order.append, number), nothing)
        worker.submit(partial(order.append, 9), done.set)
        await done.wait()
        worker.stop()

        assert order == list(range(10))
        assert "penstock-test" not in {one.name for one in threading.enumerate()}

    run(scene())


def nothing() -> None:
    """Nobody wants to know."""
