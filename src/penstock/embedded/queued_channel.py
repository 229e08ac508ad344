"""The place of a handler that waits: its events keep their order, and another has them.

When the other one has left, a real channel takes the place of this one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from penstock.embedded.job import Job
from penstock.embedded.link import Channel
from penstock.embedded.outgoing import Intent
from penstock.embedded.runner import Runner
from penstock.errors import PenstockError, TakenInOrder
from penstock.model.failure import Failure

logger = logging.getLogger(__name__)

# Pause before a handler that waits asks again.
TAKEN_S = 1.0


def say_waiting(runner: Runner) -> None:
    """Say that a handler waits for another program to leave."""
    logger.warning(
        "%s waits with %s: another program handles its events, in order",
        runner.subscriber,
        runner.handler.topic,
        extra={"action": "handler_waiting", "topic": runner.handler.topic},
    )


Join = Callable[[], Awaitable[Channel]]


async def joined(runner: Runner, join: Join) -> Channel:
    """What ``join`` gives, or a place in the queue if it raises TakenInOrder."""
    try:
        return await join()
    except TakenInOrder:
        return QueuedChannel(runner, join)


class QueuedChannel:
    """Joins when the other one has left."""

    def __init__(self, runner: Runner, join: Join) -> None:
        self._runner = runner
        self._join = join
        say_waiting(runner)
        self._task = asyncio.get_running_loop().create_task(self._wait())

    async def _wait(self) -> None:
        while True:
            await asyncio.sleep(TAKEN_S)
            try:
                self._runner.channel = await self._join()
                return
            except TakenInOrder:
                continue
            except PenstockError as error:
                self._runner.ended(str(error))
                return

    def finish(self, jobs: list[Job], intents: list[Intent]) -> None:
        """Never: there are no events."""

    def refuse(self, job: Job, failure: Failure, *, final: bool) -> bool:
        return False

    def put_back(self, jobs: list[Job]) -> None:
        """There are none."""

    def wake(self) -> None:
        """It is not the runner that wakes this one."""

    def owes(self, offset: int) -> bool:
        return False

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
