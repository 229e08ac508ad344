"""A handler's share in a subscription of a server."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.client.aio import AsyncClient
from penstock.client.aio_subscription import AsyncSubscription
from penstock.client.outgoing import Outgoing
from penstock.embedded.job import Job, events_of, lane_of
from penstock.embedded.options import MAX_AT_HAND
from penstock.embedded.outgoing import Intent, by_topic, columns_of
from penstock.embedded.queued_channel import TAKEN_S, say_waiting
from penstock.embedded.runner import LANES, Runner
from penstock.embedded.schemas import ensure_topic
from penstock.errors import (
    Backlogged,
    ConnectionLost,
    DiskFull,
    Fenced,
    InvalidOption,
    NotRunning,
    PenstockError,
    ServerRefused,
    SubscriptionEnded,
    TakenInOrder,
    WriteFailed,
)
from penstock.model.failure import Failure
from penstock.model.policy import MAX_WINDOW, RETRY, Policy, settings_in
from penstock.wire.native import EVENTS_COLUMNS, Events

if TYPE_CHECKING:
    from penstock.embedded.remote import RemoteLink

logger = logging.getLogger(__name__)

# On its way to one program at most: others may take part in the window.
MAX_AHEAD = MAX_AT_HAND // 4
# Between two tries, if the server has too much to write.
_BUSY_S = 0.05


class RemoteChannel:
    def __init__(self, link: RemoteLink, runner: Runner) -> None:
        self.runner = runner
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._client: AsyncClient | None = None
        """The connection that it has, or had."""
        self._subscription: AsyncSubscription
        self._reader: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._up = False
        """Whether there is a connection that knows of the events at hand."""
        self._by_key = runner.handler.options.order == "key"
        self._ahead = self._prefetch()
        """How many events may be on their way, or at hand."""
        self._last: int | None = None
        """The event that came last."""
        self._moves = 0
        """How often the subscription was moved."""
        self._alone = False
        """Whether it was said that the server does not share keys."""

    async def open(self) -> None:
        """Subscribe, or wait for the one who has it, and read from then on."""
        client = await self._link.connected()
        try:
            await self._subscribe(client)
        except TakenInOrder:
            say_waiting(self.runner)
        self._reader = self._loop.create_task(self._read())

    async def _subscribe(self, client: AsyncClient) -> None:
        handler, options = self.runner.handler, self.runner.handler.options
        await ensure_topic(self._link, handler.topic)
        policy = options.policy(options.window)
        try:
            subscription = await self._subscribed(client, policy)
        except InvalidOption as error:
            if not _is_unknown_order(error, policy):
                raise
            self._say_alone()
            subscription = await self._subscribed(client, replace(policy, order="log"))
        self._ahead = self._prefetch()
        subscription.when_moved(self._moved)
        self._subscription = subscription
        self._client = client
        self._up = True

    async def _subscribed(
        self, client: AsyncClient, policy: Policy
    ) -> AsyncSubscription:
        return await client.subscribe(
            self.runner.handler.topic,
            self.runner.subscriber,
            start=self.runner.handler.options.start,
            order=policy.order,
            window=policy.window,
            in_order=policy.in_order,
            prefetch=self._prefetch(),
            **settings_in(policy, RETRY),
        )

    def _say_alone(self) -> None:
        """Say once that a server of before gives keys to one program at a time."""
        if self._alone:
            return
        self._alone = True
        logger.warning(
            "%s handles %s in one program at a time: the server does not know the "
            "order 'key' yet",
            self.runner.subscriber,
            self.runner.handler.topic,
            extra={"action": "handler_alone", "topic": self.runner.handler.topic},
        )

    def _moved(self) -> None:
        self._moves += 1
        self._last = None
        self._ahead = self._prefetch()  # what was said meanwhile counts for nothing
        self.runner.moved()

    def _look_ahead(self) -> None:
        """Have as much on its way as the handler gets through in a moment.

        That is said seldom, not with each change of it. What has an order stays as it
        is: more of it could not be begun.
        """
        if self.runner.handler.options.ordered:
            return
        least = self._prefetch()
        wanted = max(least, min(self.runner.most(), MAX_AHEAD))
        if wanted >= 2 * self._ahead or wanted <= self._ahead // 4:
            self._ahead = wanted
            self._subscription.prefetch(wanted)

    def _prefetch(self) -> int:
        """What is on its way has its try counted, so it is what can be begun.

        A handler that has shown to be fast gets more, see above.
        """
        options = self.runner.handler.options
        if options.order == "strict":
            return 1
        if options.batch:
            return min(2 * options.batch * options.concurrency, MAX_WINDOW)
        return options.concurrency * (LANES if self._by_key else 1)

    async def _read(self) -> None:
        while self._up or await self._resubscribed():
            try:
                batch = await self._subscription.next_batch()
            except SubscriptionEnded as error:
                self.runner.ended(error.reason)
                return
            except PenstockError:
                self._up = False
            else:
                self._last = batch.offsets[-1]
                self._look_ahead()
                self.runner.arrived(self._jobs(batch))

    async def _resubscribed(self) -> bool:
        """Begin, or begin anew on another connection; False if that is no use.

        What still runs is waited for: the server sends its event again, and two calls
        for one event at a time are never wanted. If events are to keep their order and
        another consumer has them, that one is waited for too.
        """
        await self.runner.reset()
        waiting = self._client is None
        while True:
            client = await self._link.reconnected(self._client)
            try:
                await self._subscribe(client)
            except (ConnectionLost, NotRunning):
                continue
            except TakenInOrder:
                if not waiting:
                    say_waiting(self.runner)
                    waiting = True
                await asyncio.sleep(TAKEN_S)
                continue
            except ServerRefused as error:
                logger.error(
                    "%s cannot go on with %s: %s",
                    self.runner.subscriber,
                    self.runner.handler.topic,
                    error,
                    extra={"action": "handler_refused"},
                )
                self.runner.ended(str(error))
                return False
            return True

    def _jobs(self, batch: Events) -> list[Job]:
        topic = self.runner.handler.topic
        tries = batch.tries or [1] * len(batch.offsets)
        columns = {name: getattr(batch, name) for name in EVENTS_COLUMNS}
        events = events_of(topic, columns)
        by_key = self._by_key
        return [
            Job(event, event.offset, count, lane_of(event) if by_key else None)
            for event, count in zip(events, tries, strict=True)
        ]

    # The handler's side

    def finish(self, jobs: list[Job], intents: list[Intent]) -> None:
        if not self._up:
            if intents:
                self.runner.let_go(jobs)
            return
        if intents:
            self._spawn(self._finish(jobs, intents, self._moves))
            return
        self._subscription.settle([job.offset for job in jobs])
        self._subscription.flush_soon()

    def refuse(self, job: Job, failure: Failure, *, final: bool) -> bool:
        if self._up:
            self._subscription.refuse(job.offset, failure, final=final)
            self._subscription.flush_soon()
        return False

    def put_back(self, jobs: list[Job]) -> None:
        if self._up:
            if self._ahead > self._prefetch():
                self._subscription.prefetch(1)  # no more is to come
            self._subscription.put_back([job.offset for job in jobs])

    def wake(self) -> None:
        """The server sends by itself, within the window."""

    def owes(self, offset: int) -> bool:
        # In a window of one, another event comes only if this one was moved over.
        return self._last is None or offset == self._last or self._prefetch() > 1

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.wait([self._reader])
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._up:
            with suppress(PenstockError):  # gone: the server notices by itself
                await self._subscription.close()

    async def drained(self) -> bool:
        """Whether the server owes nothing."""
        if self._tasks:
            return False
        if self.runner.gone is not None:
            return True
        # Any: an answer of the desk as it came.
        view: Any = await self._link.ask(
            "subscriptions.show",
            {
                "subscriber": self.runner.subscriber,
                "topic": self.runner.handler.topic,
                "limit": 1,
            },
        )
        return bool(view["lag"] == 0)

    async def _finish(self, jobs: list[Job], intents: list[Intent], moves: int) -> None:
        """``moves``: when the handler ended; it counts for nothing after another."""
        offsets = [job.offset for job in jobs]
        groups = by_topic(intents).items()
        events = {topic: outgoing(group) for topic, group in groups}
        while moves == self._moves:
            try:
                await self._subscription.finish(offsets, events)
                if moves == self._moves:
                    self.runner.finished(jobs)
                return
            except ServerRefused as error:
                if moves != self._moves:
                    return
                if _is_lost(error):
                    break
                if not isinstance(error, Backlogged):
                    for job in jobs:
                        self.runner.could_not_publish(job, error)
                    return
            except PenstockError:
                break  # the connection is gone
            await asyncio.sleep(_BUSY_S)
        if moves == self._moves:
            self.runner.let_go(jobs)  # the events come again

    def _spawn(self, work: Any) -> None:
        task: asyncio.Task[None] = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _is_unknown_order(error: InvalidOption, policy: Policy) -> bool:
    """Whether a server of before refuses the order; it tells a text and no fields."""
    return policy.order == "key" and str(error).startswith("option order is 'key':")


def _is_lost(error: ServerRefused) -> bool:
    """Whether it was done, and a failed write took it back: the event comes again."""
    never_done = isinstance(error, DiskFull | Fenced)
    return isinstance(error, WriteFailed) and not never_done


def outgoing(intents: list[Intent]) -> Outgoing:
    """Events of one topic in columns."""
    known = [one.dedup_id for one in intents]
    return Outgoing(columns_of(intents, 0, None), known if any(known) else None)
