"""One handler at work: what it has at hand, what runs, and what became of it.

Events are asked for as there is room for them, and room is what the handler gets
through in a moment: an event at hand has a try counted, which should not be wasted. So
a slow handler has as many events at hand as it handles at once; a fast one has more,
or it would wait for each of them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Hashable
from contextlib import suppress
from math import inf, nextafter
from typing import Any

from penstock.clock import Clock
from penstock.embedded.handler import Handler
from penstock.embedded.job import Job
from penstock.embedded.lanes import Lanes
from penstock.embedded.link import Channel, KnownTypes
from penstock.embedded.options import MAX_AT_HAND
from penstock.embedded.run import HandlerRun, TracedCalls, failure_of, unfit
from penstock.embedded.threads import ThreadPool
from penstock.embedded.topic import Topic
from penstock.embedded.worker_pool import TaskPool, WorkerPool
from penstock.errors import GiveUp, PenstockError, UnfitPayload
from penstock.model.failure import Failure

logger = logging.getLogger(__name__)

# What a handler may have at hand besides what runs: so much time of work.
AHEAD_S = 0.02
# What may wait for a thread: so much time of work, and so many calls.
QUEUED_S = 0.001
MAX_QUEUED = 256
# Where others wait for the first of their lane there have to be more lanes at hand.
LANES = 8
# Calls that did not end in time, cannot be stopped, and go on for nothing.
MAX_STUCK = 64
# Weight of the latest call in the average of durations.
_WEIGHT = 0.1


class Runner(TracedCalls):
    """Takes events of a channel, has them handled, and tells the channel."""

    def __init__(
        self,
        handler: Handler,
        subscriber: str,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        book: KnownTypes,
    ) -> None:
        self.handler = handler
        self.subscriber = subscriber
        self.at_hand = 0
        """Events that came and are neither settled nor given up."""
        self.handled = 0
        self.failed = 0
        self.gone: str | None = None
        """Why there are no more events, if there are none."""
        self.channel: Channel
        options = handler.options
        self._options = options
        self._clock = clock
        self._loop = loop
        self._book = book
        self._tasks: set[asyncio.Task[None]] = set()
        self._lanes: Lanes[Job] = Lanes(ordered=options.ordered)
        self._closing = False
        self._one_ended = asyncio.Event()
        self._said_stuck = False
        self._moves = 0
        """How often the subscription was moved: calls from before count for nothing."""
        self._mean_s = options.timeout_s
        limit = 1 if options.order == "strict" else options.concurrency
        self._concurrency = limit
        self._pool: WorkerPool
        if handler.is_async:
            self._pool = TaskPool(loop, limit, self._waiting, self._next, self._ended)
        else:
            name = f"penstock-{subscriber}"
            self._pool = ThreadPool(
                loop, limit, self._ahead, self._next, self._ended, name
            )

    # What comes

    def room(self) -> int:
        """How many more events may come now."""
        if self._closing or self._lanes.paused or self._pool.stuck >= MAX_STUCK:
            return 0
        if self.at_hand and self.at_hand == self._lanes.held:
            # All of them wait for others that went back, and come as one more.
            return max(self.most() - self.at_hand, 1)
        return self.most() - self.at_hand

    def most(self) -> int:
        """How many events it may have at hand: what it gets through in a moment."""
        options = self._options
        ahead = self._concurrency
        if self._mean_s < AHEAD_S:
            ahead = int(ahead * min(AHEAD_S / max(self._mean_s, 1e-9), MAX_AT_HAND))
        if options.batch:
            ahead = max(ahead, 2 * options.batch * self._concurrency)
        if options.order == "key":
            ahead = max(ahead, self._concurrency * LANES)
        return min(ahead, max(MAX_AT_HAND, 2 * options.batch))

    def arrived(self, jobs: list[Job]) -> None:
        """Take up events; those that the filter does not want are settled at once."""
        self.at_hand += len(jobs)
        if self._options.filtered:
            jobs = self._filtered(jobs)
        self._lanes.add(jobs)
        self._pool.wake()

    def _filtered(self, jobs: list[Job]) -> list[Job]:
        wanted: list[Job] = []
        others: list[Job] = []
        for job in jobs:
            event = job.event
            takes = self._options.takes(event.key, event.headers)
            (wanted if takes else others).append(job)
        if others:
            self.at_hand -= len(others)
            self.channel.finish(others, [])
        return wanted

    def ended(self, reason: str) -> None:
        """No more events will come."""
        self.gone = reason
        logger.warning(
            "%s gets no more events of %s: %s",
            self.subscriber,
            self.handler.topic,
            reason,
            extra={"action": "handler_ended", "topic": self.handler.topic},
        )

    # What runs

    def _waiting(self) -> bool:
        """Whether another call could be made now."""
        return bool(self._lanes.ready) and not self._closing

    def _ahead(self) -> int:
        """How many calls may wait for a thread: none unless they are short."""
        return int(min(QUEUED_S / max(self._mean_s, 1e-9), MAX_QUEUED))

    def _next(self) -> HandlerRun | None:
        """The next call, if there is one to be made now."""
        ready = self._lanes.ready
        while ready and not self._closing:
            jobs = self._lanes.pick(self._options.batch)
            try:
                run = HandlerRun(
                    jobs, self.handler, self.subscriber, self._clock, self.tracer
                )
            except UnfitPayload as error:
                self._sort_out(jobs, error)
            else:
                run.moves = self._moves
                return run
        return None

    def _sort_out(self, jobs: list[Job], error: UnfitPayload) -> None:
        """Give up the events whose payloads do not fit; the others go on."""
        now_s = self._clock.now_s()
        fine = []
        for job in jobs:
            problem: UnfitPayload | None = error if len(jobs) == 1 else None
            if problem is None:
                try:
                    job.typed(self.handler.codec)
                    fine.append(job)
                except UnfitPayload as found:
                    problem = found
            if problem is not None:
                self._refuse(job, unfit(problem, job, now_s), final=True)
        self._lanes.ready.extendleft(reversed(fine))

    def _ended(self, run: HandlerRun) -> None:
        """A call has ended by itself."""
        run.context.over = True
        self._one_ended.set()
        now_s = run.ended_s or self._clock.now_s()
        self._mean_s += _WEIGHT * (
            (now_s - run.started_s) / len(run.jobs) - self._mean_s
        )
        if run.moves != self._moves:
            self._begin_anew()
            return
        failures = run.failures(now_s)
        if failures is not None:
            self._fail(run, failures)
            return
        intents = run.context.intents()
        if not intents:
            self.channel.finish(run.jobs, intents)
            self.finished(run.jobs)
            return
        unknown = [one for one in run.context.topics() if not self._book.knows(one)]
        if unknown:  # once for each topic
            self._spawn(self._tell_types(run, unknown))
        else:
            self.channel.finish(run.jobs, intents)

    async def _tell_types(self, run: HandlerRun, topics: list[Topic[Any]]) -> None:
        """Have the types of topics known before the first event is published there."""
        try:
            for topic in topics:
                await self._book.add(topic)
        except PenstockError as error:
            for job in run.jobs if run.moves == self._moves else ():
                self.could_not_publish(job, error)
        else:
            if run.moves == self._moves:
                self.channel.finish(run.jobs, run.context.intents())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def shift(self, seconds: float) -> None:
        """The clock was set: calls under way have as much time left as before."""
        for run in self._pool.running() if seconds else ():
            run.started_s += seconds
            run.deadline_s += seconds

    def tick(self, now_s: float) -> None:
        """Give up calls whose time is over."""
        for run in self._pool.running():
            if now_s <= run.deadline_s:
                break
            run.given_up = run.context.over = True
            self._one_ended.set()
            self._pool.give_up(run)
            if run.moves == self._moves:
                self._fail(run, run.overrun(now_s))
        self._begin_anew()
        self._pool.wake()
        self.unblock()
        if self._pool.stuck >= MAX_STUCK and not self._said_stuck:
            self._said_stuck = True
            logger.error(
                "the handler %s has %s calls that do not end: it gets no more events",
                self.handler.where,
                self._pool.stuck,
                extra={"action": "handler_stuck", "topic": self.handler.topic},
            )
        elif self._pool.stuck < MAX_STUCK and self._said_stuck:
            self._said_stuck = False
            self.channel.wake()

    def running(self) -> list[HandlerRun]:
        """Calls under way, those that began first in front."""
        return list(self._pool.running())

    @property
    def starting(self) -> int:
        """Calls that are about to begin, as nothing is in their way."""
        return self._pool.starting

    def next_s(self) -> float | None:
        """The first moment at which a call that is under way is given up."""
        deadline_s = min((run.deadline_s for run in self._pool.running()), default=inf)
        return None if deadline_s == inf else nextafter(deadline_s, inf)

    def unblock(self) -> None:
        """Let lanes go on whose first event will not come again: it was moved over."""
        if not self._options.ordered:
            return
        gone: list[Hashable] = [
            lane
            for lane, offset in self._lanes.blocked().items()
            if not self.channel.owes(offset)
        ]
        for lane in gone:
            self._lanes.unblock(lane)
        if gone:
            self._pool.wake()

    def _fail(self, run: HandlerRun, failures: list[Failure]) -> None:
        # In a batch it is not known which event was meant: each is tried alone.
        final = isinstance(run.error, GiveUp) and len(run.jobs) == 1
        for job, failure in zip(run.jobs, failures, strict=True):
            self._refuse(job, failure, final=final)

    # What became of it

    def finished(self, jobs: list[Job]) -> None:
        """Events are settled, with everything their handler published."""
        self.handled += len(jobs)
        self.let_go(jobs)

    def let_go(self, jobs: list[Job]) -> None:
        """Events are not here any more, whatever became of them."""
        self.at_hand -= len(jobs)
        if self._options.ordered:
            for job in jobs:
                self._lanes.finish(job)
        self._pool.wake()

    def passed(self, jobs: list[Job]) -> None:
        """Events were given up for good: what waits for them may go."""
        for job in jobs:
            self._lanes.finish(job)
        self._pool.wake()

    def taken_back(self, jobs: list[Job]) -> list[Job]:
        """Events are owed again, as the disk failed; what was not begun is to go back.

        That is returned, and at hand no more. The lanes wait for what is owed again.
        """
        self.at_hand -= len(jobs)
        return self._drain()

    def could_not_publish(self, job: Job, error: PenstockError) -> None:
        """A handler succeeded, but what it wanted to publish was refused."""
        failure = failure_of(error, job, self._clock.now_s(), 0.0)
        self._refuse(job, failure, final=False)
        self._pool.wake()

    async def reset(self) -> None:
        """The subscription is lost: forget what was not begun, wait for what was.

        It all comes again, to the next subscriber.
        """
        self._drain()
        while self._pool.busy:
            self._one_ended.clear()
            await self._one_ended.wait()
        self._lanes.forget()

    def moved(self) -> None:
        """The subscription goes on elsewhere: forget what was not begun.

        What still runs is waited for, and whatever becomes of it counts for nothing.
        """
        self._moves += 1
        self._drain()
        self.at_hand = 0
        self._lanes.pause()
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Go on after a move, if nothing runs any more that was begun before it."""
        if self._lanes.paused and not self._pool.busy:
            self._lanes.resume()
            self._pool.wake()
            self.channel.wake()

    def _refuse(self, job: Job, failure: Failure, *, final: bool) -> None:
        self.failed += 1
        self.at_hand -= 1
        refused = self.channel.refuse(job, failure, final=final)
        if not refused and self.is_last(job, final=final):
            self._lanes.finish(job)

    def is_last(self, job: Job, *, final: bool) -> bool:
        """Whether there is no other try."""
        return final or job.tries >= self._options.tries

    @property
    def idle(self) -> bool:
        """Whether nothing is at hand."""
        return not self.at_hand and not self._lanes.paused

    async def abandon(self) -> None:
        """Stop at once; the broker is not told: as if the process had been killed."""
        self._closing = True
        self._drain()
        for run in self._pool.running():
            run.given_up = True
            self._pool.give_up(run)
        await self._pool.stop()

    async def close(self, grace_s: float) -> None:
        """Begin nothing more; wait for what runs, then stop it, and leave.

        Events that were never begun go back as they were. Those in the middle of a
        try have it counted.
        """
        self._closing = True
        self.channel.put_back(self._drain())
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while self._pool.busy:
                    self._one_ended.clear()
                    await self._one_ended.wait()
        await self._pool.stop()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if late := self._drain():  # it was on its way from a server
            self.channel.put_back(late)
        await self.channel.close()

    def _drain(self) -> list[Job]:
        """Everything at hand that was not begun; it is at hand no more."""
        jobs = [job for run in self._pool.withdraw() for job in run.jobs]
        jobs += self._lanes.drain()
        self.at_hand -= len(jobs)
        return jobs
