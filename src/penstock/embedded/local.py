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

from penstock.access.grants import ADMINISTRATOR
from penstock.broker.broker import Broker
from penstock.broker.promised import Promised
from penstock.broker.publishing import ids_at
from penstock.clock import Clock, SystemClock
from penstock.desk.desk import Desk
from penstock.desk.figures import Figures
from penstock.desk.verbs import Promise, call
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
from penstock.server.engine import TICK_S, Engine
from penstock.server.listeners import Listeners, Port, bind_local
from penstock.server.options import ServerOptions
from penstock.server.process_info import ServerProcessInfo
from penstock.server.sync_pace import SYNC_WAIT_S
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
        self.engine = Engine(broker, clock, loop, sync_wait_s=SYNC_WAIT_S)
        self.producer: str | None = None
        """Who publishes, unless it is a handler."""
        self._loop = loop
        self._desk = Desk(broker, Figures(broker, ServerProcessInfo(self.engine)))
        self._upkeep = Upkeep(broker.log, broker.chains)
        self._open: dict[tuple[str, bool], Posting] = {}
        self._sent: Promised[Posting] = Promised(broker.log)
        self._waiting: Promised[asyncio.Future[None]] = Promised(broker.log)
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
            except PenstockError as error:
                posting.errors = dict.fromkeys(range(len(posting.intents)), error)
                posting.placed([-1] * len(posting.intents), None)
            self._sent.put(0 if posting.refused else self.broker.promised, posting)
        if self._open:
            self._posting = True
            self._loop.call_later(BACKLOG_S, self._post)
        else:
            self._posted.set()
        self.broker.awake[self] = None  # perhaps there is nothing to wait for
        self.engine.kick()

    def _store(self, posting: Posting) -> None:
        """Store what can be; raises why none of it can."""
        intents, now_s = posting.intents, self.clock.now_s()
        columns = columns_of(intents, int(now_s * 1000), self.producer)
        once = intents[0].dedup_id is not None
        outcome = self.broker.accept(
            posting.topic,
            columns,
            dedup_ids=[one.dedup_id for one in intents] if once else None,
            now_s=now_s,
        )
        posting.errors = dict(outcome.refused)
        if not outcome.refused and not once:
            (piece,) = outcome.pieces
            assert piece.appended is not None, "no ids were given to tell them by"
            posting.placed(piece.offsets, piece.appended.generated_ids())
            return
        offsets = [-1] * len(intents)
        for piece in outcome.pieces:
            for index, offset in zip(piece.units, piece.offsets, strict=True):
                offsets[index] = offset
        posting.placed(offsets, None)

    def _id_at(self, topic: str, offset: int) -> str:
        return (ids_at(self.broker, topic, [offset])[0] if offset >= 0 else None) or ""

    # The pump's side

    def flush(self, now_s: float) -> None:
        """A commit has ended: tell those who waited for it."""
        self._changed.set()
        for posting, holds in self._sent.take_any():
            if holds:
                posting.stored(self._id_at)
            else:
                posting.lost(self._failure())
        for future, holds in self._waiting.take_any():
            if future.done():
                continue
            if holds:
                future.set_result(None)
            else:
                future.set_exception(self._failure())
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
        moments = [self.engine.next_s(), self.broker.next_s()]
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
        if self._ticks % UPKEEP_TICKS == 0:
            if self._listeners is not None:
                self._listeners.check_idle(now_s)
            self._upkeep.step(now_s, idle=self.engine.idle)

    # Subscribing

    async def subscribe(self, runner: Runner) -> Channel:
        channel = await joined(runner, partial(self._subscribed, runner))
        self._runners.append(runner)
        return channel

    async def _subscribed(self, runner: Runner) -> LocalChannel:
        options, topic = runner.handler.options, runner.handler.topic
        broker = self.broker
        if not broker.log.has_topic(topic):
            broker.create_topic(topic)
        policy = options.policy(options.window)
        subscription = broker.subscribe(runner.subscriber, topic, policy, options.start)
        await self._committed(broker.promised)
        return LocalChannel(self, subscription, runner)

    def drop(self, runner: Runner) -> None:
        self._runners.remove(runner)

    def mark(self, topic: str) -> object:
        log = self.broker.log
        return log.topic(topic).id if log.has_topic(topic) else None

    async def _committed(self, group: int) -> None:
        """Return when a group is on disk; raises WriteFailed."""
        if group <= self.broker.log.written:
            return
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.put(group, future)
        self.broker.waiting[self] = None
        self.engine.kick()
        await future

    # The desk

    async def ask(self, verb: str, arguments: Mapping[str, object]) -> object:
        found = self._desk.find(verb)
        result = call(found, arguments)
        if found.promise is not Promise.NOTHING:
            await self._committed(self.broker.promised)
        return result

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
            self.broker.throttle.close()
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
