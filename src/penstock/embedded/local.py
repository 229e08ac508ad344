"""The broker in this process: the pump of a server, without the server.

It also listens at the socket in its data directory, so that ``penstock`` commands work
on a running program as they do on a server.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial

from penstock.broker.access import ADMINISTRATOR
from penstock.broker.broker import Broker
from penstock.broker.desk import Desk
from penstock.broker.desk_verbs import Promise, Verb, call
from penstock.broker.figures import Figures
from penstock.clock import Clock, SystemClock
from penstock.embedded.link import Channel
from penstock.embedded.local_broker import LocalOptions, open_broker
from penstock.embedded.local_channel import LocalChannel
from penstock.embedded.outgoing import Intent, Posting, Stored, columns_of
from penstock.embedded.queued_channel import joined
from penstock.embedded.runner import Runner
from penstock.errors import Backlogged, PenstockError, WriteFailed
from penstock.files import FileSystem
from penstock.gateway.native import NativeGateway
from penstock.gateway.options import NativeOptions
from penstock.server.around import ServerAround
from penstock.server.engine import TICK_S, Engine
from penstock.server.listeners import Listeners, Port, bind_local
from penstock.server.options import ServerOptions
from penstock.server.upkeep import Upkeep

logger = logging.getLogger(__name__)

# Pause before what was too much is handed to the log again.
BACKLOG_S = 0.01
# Upkeep is asked for once in so many ticks.
UPKEEP_TICKS = 10


class LocalLink:
    def __init__(
        self, broker: Broker, clock: Clock, loop: asyncio.AbstractEventLoop
    ) -> None:
        self.broker = broker
        self.clock = clock
        self.engine = Engine(broker, clock, loop)
        self.producer: str | None = None
        """Who publishes, unless it is a handler."""
        self._loop = loop
        self._desk = Desk(broker, Figures(broker, ServerAround(self.engine)))
        self._upkeep = Upkeep(broker.log, broker.chains)
        self._open: dict[tuple[str, bool], Posting] = {}
        self._sent: list[tuple[int, Posting]] = []
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._posting = False
        self._posted = asyncio.Event()
        """Set while nothing waits to be handed to the log."""
        self._posted.set()
        self._retries: dict[LocalChannel, None] = {}
        self._changed = asyncio.Event()
        self._runners: list[Runner] = []
        self._ticker: asyncio.Task[None] | None = None
        self._ticks = 0
        self._listeners: Listeners | None = None
        self._stack = ExitStack()
        self.engine.members[self] = self

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        options: LocalOptions,
        *,
        clock: Clock | None = None,
        files: FileSystem | None = None,
    ) -> LocalLink:
        """Open a data directory; raises DirectoryLocked naming who has it."""
        clock = clock or SystemClock()
        # In a thread, as what it holds may take a while to be recovered.
        broker = await asyncio.to_thread(open_broker, path, options, clock, files)
        link = cls(broker, clock, asyncio.get_running_loop())
        try:
            if options.listen and files is None:
                await link._listen(os.fspath(path))
        except BaseException:
            broker.log.abandon()
            raise
        link._ticker = asyncio.create_task(link._tick_for_ever())
        return link

    async def _listen(self, directory: str) -> None:
        options = ServerOptions(data=directory)
        sock = self._stack.enter_context(bind_local(directory))
        native = NativeOptions()
        self._listeners = Listeners(self.engine, options, None)
        self._listeners.listen(
            Port(
                name="local",
                sock=sock,
                make_gateway=lambda: NativeGateway(
                    self.broker, self._desk, native, grants=ADMINISTRATOR
                ),
            )
        )

    # Publishing

    async def publish(self, intent: Intent) -> Stored:
        posting = self._posting_of(intent)
        index = posting.add(intent)
        await posting.wait(self._loop)
        return posting.result(index)

    async def publish_many(self, intents: list[Intent]) -> list[Stored]:
        placed = []
        for intent in intents:
            posting = self._posting_of(intent)
            placed.append((posting, posting.add(intent)))
        waiters = [
            posting.wait(self._loop)
            for posting in dict.fromkeys(posting for posting, _ in placed)
        ]
        await asyncio.gather(*waiters)
        return [posting.result(index) for posting, index in placed]

    def _posting_of(self, intent: Intent) -> Posting:
        """The events of that topic that are stored with the next turn."""
        key = intent.topic, intent.dedup_id is not None
        posting = self._open.get(key)
        if posting is None:
            posting = self._open[key] = Posting(intent.topic)
            if not self._posting:
                self._posting = True
                self._posted.clear()
                self._loop.call_soon(self._post)
        return posting

    def _post(self) -> None:
        """Hand everything that was published since to the log."""
        self._posting = False
        postings, self._open = self._open, {}
        for key, posting in postings.items():
            try:
                self._store(posting)
            except Backlogged:  # too much to write already
                self._open[key] = posting
                continue
            except PenstockError:
                self._one_by_one(posting)
            self._sent.append((self.broker.promised, posting))
        if self._open:
            self._posting = True
            self._loop.call_later(BACKLOG_S, self._post)
        else:
            self._posted.set()
        self.broker.awake[self] = None  # perhaps there is nothing to wait for
        self.engine.kick()

    def _store(self, posting: Posting) -> None:
        broker, intents = self.broker, posting.intents
        now_s = self.clock.now_s()
        columns = columns_of(intents, int(now_s * 1000), self.producer)
        if posting.topic not in broker.log.catalog:
            columns.check(broker.log.options.max_event_bytes)  # make none in vain
        if intents[0].dedup_id is None:
            appended = broker.publish(posting.topic, columns)
            first = appended.base_offset
            stored = range(first, first + appended.count)
            posting.placed(stored, appended.generated_ids())
            return
        dedup_ids = [one.dedup_id for one in intents]
        offsets = broker.publish_once(posting.topic, columns, dedup_ids, now_s)
        posting.placed(offsets, None)

    def _one_by_one(self, posting: Posting) -> None:
        """Store those that are not refused."""
        offsets: list[int] = []
        groups: dict[int, int] = {}
        for index, intent in enumerate(posting.intents):
            alone = Posting(posting.topic)
            alone.add(intent)
            try:
                self._store(alone)
                offsets.append(alone.offset(0))
                groups[index] = self.broker.promised
            except PenstockError as error:
                posting.errors[index] = error
                offsets.append(-1)
        for index, group in groups.items():
            # It was full, was written for those behind it, and failed.
            if self.broker.log.outcome(group) == "failed":
                posting.errors[index] = self._failure()
                offsets[index] = -1
        posting.placed(offsets, None)

    def _id_at(self, topic: str, offset: int) -> str:
        page = self.broker.pages.at(topic, offset) if offset >= 0 else None
        return "" if page is None else page.ids[page.batch.index_of(offset)]

    # The pump's side

    def flush(self, now_s: float) -> None:
        """A commit has ended: tell those who waited for it."""
        log = self.broker.log
        self._changed.set()
        sent, self._sent = self._sent, []
        for group, posting in sent:
            if posting.refused:
                posting.stored(self._id_at)
            elif log.outcome(group) == "failed":
                posting.lost(self._failure())
            elif group <= log.written:
                posting.stored(self._id_at)
            else:
                self._sent.append((group, posting))
        waiting, self._waiting = self._waiting, []
        for group, future in waiting:
            if future.done():
                continue
            if log.outcome(group) == "failed":
                future.set_exception(self._failure())
            elif group <= log.written:
                future.set_result(None)
            else:
                self._waiting.append((group, future))
        if self._sent or self._waiting:
            self.broker.waiting[self] = None

    def _failure(self) -> WriteFailed:
        failure = self.broker.log.failure
        assert failure is not None, "asked for when a commit has failed"
        return failure

    def retry(self, channel: LocalChannel) -> None:
        """Wake a channel with the next tick."""
        self._retries[channel] = None

    async def _tick_for_ever(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            self.tick()

    @property
    def resting(self) -> bool:
        """Whether nothing but handlers and time can change anything."""
        return self.engine.resting and self._posted.is_set()

    @property
    def runners(self) -> list[Runner]:
        return self._runners

    def next_s(self) -> float | None:
        """When a tick has something to do next, as far as that is known."""
        moments = [self.engine.next_s(), self.broker.timers.next_s()]
        moments += [one.next_s() for one in self._runners]
        if self._retries:
            moments.append(self.clock.now_s() + TICK_S)
        return min((one for one in moments if one is not None), default=None)

    def tick(self) -> None:
        """What time brings."""
        step_s = self.engine.mind_the_clock()
        now_s = self.clock.now_s()
        for runner in self._runners:
            runner.shift(step_s)
            runner.tick(now_s)
        for channel in self._retries:
            self.broker.awake[channel] = None
        self._retries.clear()
        self.engine.tick()
        self._ticks += 1
        self._changed.set()
        self._upkeep.index(idle=self.engine.idle)
        if self._ticks % UPKEEP_TICKS == 0 and self.engine.idle:
            if self._listeners is not None:
                self._listeners.check_idle(now_s)
            self._upkeep.step(now_s)

    # Subscribing

    async def subscribe(self, runner: Runner) -> Channel:
        channel = await joined(runner, partial(self._subscribed, runner))
        self._runners.append(runner)
        return channel

    async def _subscribed(self, runner: Runner) -> LocalChannel:
        options, topic = runner.handler.options, runner.handler.topic
        broker = self.broker
        if topic not in broker.log.catalog:
            broker.create_topic(topic)
        policy = options.policy(options.window)
        subscription = broker.subscribe(runner.subscriber, topic, policy, options.start)
        await self._committed(broker.promised)
        return LocalChannel(self, subscription, runner)

    def drop(self, runner: Runner) -> None:
        self._runners.remove(runner)

    def mark(self, topic: str) -> object:
        catalog = self.broker.log.catalog
        return catalog.get(topic).id if topic in catalog else None

    async def _committed(self, group: int) -> None:
        """Return when a group is on disk; raises WriteFailed."""
        if group <= self.broker.log.written:
            return
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((group, future))
        self.broker.waiting[self] = None
        self.engine.kick()
        await future

    # The desk

    async def ask(self, verb: str, arguments: Mapping[str, object]) -> object:
        found = self._desk.find(verb)
        if found.exclusive:
            return await self._alone(found, arguments)
        result = call(found, arguments)
        if found.promise is not Promise.NOTHING:
            await self._committed(self.broker.promised)
        return result

    async def _alone(self, verb: Verb, arguments: Mapping[str, object]) -> object:
        """Orders that need an idle log."""
        while not self.engine.idle:
            await self.turn()
        return call(verb, arguments)

    # Waiting and ending

    async def settled(self, runners: list[Runner]) -> bool:
        if self._open or self._sent or self.broker.urgent or not self.engine.idle:
            return False
        return all(one.idle and self._drained(one) for one in runners)

    def _drained(self, runner: Runner) -> bool:
        subscriptions = self.broker.subscriptions
        one = subscriptions.get(runner.subscriber, runner.handler.topic)
        return one is None or one.drained

    async def turn(self) -> None:
        self._changed.clear()
        self.broker.waiting[self] = None
        await self._changed.wait()

    async def close(self) -> None:
        if self._ticker is not None:
            self._ticker.cancel()
            await asyncio.wait([self._ticker])
        if self._listeners is not None:
            self._listeners.close()
        for connection in list(self.engine.connections.values()):
            connection.stop_reading()
        try:
            await self._drain()
        finally:
            await self.engine.part(0.0)
            await self.engine.stop()
            self._stack.close()
            self.broker.seldom.close()
            self.broker.chains.close()
            self.broker.log.close()

    async def _drain(self) -> None:
        drain_s = ServerOptions().drain_s
        try:
            async with asyncio.timeout(drain_s):
                await self._posted.wait()
                await self.engine.drain()
                await self.engine.part()  # which is the end of what they were at
                await self.engine.drain()
        except TimeoutError:
            logger.warning(
                "closed with something left to store: not drained within %g s",
                drain_s,
                extra={"action": "drain_timeout"},
            )
