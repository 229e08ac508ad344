"""The pump: what came in is committed, what is ready goes out.

One turn of the pump follows every read and every commit that has ended, however many
connections took part:

    go on with retention and compaction, if it is time for that
    begin a commit if one is waited for and none is under way
    write out segments if that is due
    let every connection that was woken send what it has
    answer questions for a moment, one of each connection in turn

So the next group collects while this one syncs, and all clients that published
meanwhile share one sync. When more is under way than memory should hold, the
connections stop reading until it is less.

Syncs and segment writes, which would hold up the event loop, run in threads: one piece
of work at a time each, and no queue grows, as the engine waits for the answer before it
hands over again. A small commit is synced on the spot where the disk is fast
(``sync_pace.py``).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol

from penstock.broker.broker import Broker
from penstock.clock import Clock, SystemClock
from penstock.delivery.consumer import Member
from penstock.errors import InDoubt
from penstock.gateway.gateway import Gateway
from penstock.log import GroupCommit, StoreWork
from penstock.server.sync_pace import SyncPace

if TYPE_CHECKING:
    from penstock.server.connection import Connection


ThreadWork = Callable[[], None]


class Worker:
    """One thread. ``submit`` from the loop; ``done`` is called in the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._queue: SimpleQueue[tuple[ThreadWork, ThreadWork] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: ThreadWork, done: ThreadWork) -> None:
        self._queue.put((work, done))

    def stop(self) -> None:
        """Let the thread end when it has nothing to do."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, done = item
            try:
                work()
            finally:
                self._loop.call_soon_threadsafe(done)


logger = logging.getLogger(__name__)


class Resting(Protocol):
    """A connection or request that has stopped until there is room again."""

    def resume(self) -> None: ...


# Pause after a failed commit, so that a full disk does not keep a core busy.
RETRY_S = 1.0
# What may be lost in a crash without any client having been promised anything (the
# counting of tries) waits this long for a commit that happens anyway.
LAZY_S = 0.2
TICK_S = 0.1
# How long questions are answered before everything else has a turn again.
QUESTIONS_S = 0.01
# How long a connection may take for the last answers.
PART_S = 1.0


class Engine:
    def __init__(
        self,
        broker: Broker,
        clock: Clock,
        loop: asyncio.AbstractEventLoop,
        *,
        sync_wait_s: float = 0.0,
    ) -> None:
        self.broker = broker
        self.loop = loop
        self.connections: dict[Gateway, Connection] = {}
        self.members: dict[object, Member] = {}
        """Outlets of the broker that are no gateways."""
        self.deserted = asyncio.Event()
        """Set while there are no connections."""
        self.deserted.set()
        self._clock = clock
        self._log = broker.log
        self._syncer = Worker(loop, "penstock-sync")
        self._writer = Worker(loop, "penstock-write")
        self._pace = SyncPace(sync_wait_s)
        self._commit: GroupCommit | None = None
        self._doubted = False
        """Whether that commit waits for being looked after again."""
        self._took_s = 0.0
        """How long the last brief commit has taken."""
        self._began_s = 0.0
        """When the commit that is under way was begun, by a clock of no date."""
        self._store: StoreWork | None = None
        self._tidier: Worker | None = None
        """For retention and compaction, of which many have none."""
        self._upkeep: StoreWork | None = None
        self._scheduled = False
        self._held_until_s = 0.0
        self._lazy_since_s = 0.0
        self._paused: dict[Resting, None] = {}
        self.owing: dict[Connection, None] = {}
        """Those whose users have to wait, as they publish faster than they may."""
        self._asking: dict[Connection, None] = {}
        """Those who have asked something, in the order of their turns."""
        self._ended = asyncio.Event()
        """Set whenever a piece of work has ended."""
        self._draining = False
        self._stopped = False
        self._buffer = memoryview(b"")
        options = self._log.options
        self._most_pending = options.group_bytes // 2
        self._most_unwritten = 2 * options.write_out_bytes

    def now_s(self) -> float:
        return self._clock.now_s()

    @property
    def congested(self) -> bool:
        """Whether more is under way than should be."""
        log = self._log
        return (
            log.pending_bytes > self._most_pending
            or log.unwritten_bytes > self._most_unwritten
        ) and (not self.idle or self.now_s() < self._held_until_s)

    @property
    def idle(self) -> bool:
        """Whether no work is under way."""
        return self._commit is None and self._store is None

    @property
    def resting(self) -> bool:
        """Whether nothing is under way, or about to be without anything new."""
        return self.idle and not self._scheduled

    @property
    def paused_until_s(self) -> float | None:
        """When it writes again after a failed commit, if it waits for that."""
        return self._held_until_s if self.now_s() < self._held_until_s else None

    def next_s(self) -> float | None:
        """When the pump has to turn again, if it waits for a moment."""
        if (until_s := self.paused_until_s) is not None:
            return until_s
        if self._lazy_since_s and self.broker.dirty:
            return self._lazy_since_s + LAZY_S
        return None

    def buffer(self, size: int) -> memoryview:
        """Where reads go: one for all, as what was read is copied at once."""
        if len(self._buffer) < size:
            self._buffer = memoryview(bytearray(size))
        return self._buffer

    def enter(self, connection: Connection) -> None:
        self.connections[connection.gateway] = connection
        self.deserted.clear()

    def leave(self, connection: Connection) -> None:
        del self.connections[connection.gateway]
        self.owing.pop(connection, None)
        self._asking.pop(connection, None)
        if not self.connections:
            self.deserted.set()
        self.kick()

    def pause(self, resting: Resting) -> None:
        """Have a connection resumed when there is room again."""
        self._paused[resting] = None

    def line_up(self, connection: Connection) -> None:
        """Have a connection go on when it is its turn."""
        self._asking[connection] = None
        self.kick()

    def kick(self) -> None:
        """Have the pump turn, once, before the loop waits again."""
        if not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self._turn)

    def tick(self) -> None:
        """What time brings; called every TICK_S."""
        self.mind_the_clock()
        try:
            self.broker.tick(self.now_s())
        except Exception:
            # A mistake of ours, or a log that refuses: others must not suffer.
            logger.exception("a tick failed", extra={"action": "tick_failed"})
        if self.owing:
            self._resume_paid(self.now_s())
        self.kick()

    def _resume_paid(self, now_s: float) -> None:
        """Let those go on whose users have waited for long enough, in turn."""
        for connection in list(self.owing):
            connection.active_s = now_s  # we do not read: it is not silent
            if connection.has_paid():
                del self.owing[connection]
                connection.resume()

    def mind_the_clock(self) -> float:
        """If the clock was set, see to it that it changes nothing; by how much."""
        step_s = 0.0
        if isinstance(self._clock, SystemClock):
            step_s = self._clock.was_set_s()
        if step_s:
            self._held_until_s += step_s
            if self._lazy_since_s:
                self._lazy_since_s += step_s
            self.broker.timers.shift(step_s)
            self.broker.sessions.shift(step_s)
            for connection in self.connections.values():
                connection.shift(step_s)
            logger.warning(
                "the clock was set by %+.1f s",
                step_s,
                extra={"action": "clock_set"},
            )
        return step_s

    async def drain(self) -> None:
        """Return when everything that was begun is committed."""
        self._draining = True
        while self._commit or self._store or self._scheduled or self.broker.dirty:
            self._ended.clear()
            self.kick()
            with suppress(TimeoutError):  # the pause after a failure just ends
                await asyncio.wait_for(self._ended.wait(), TICK_S)

    async def part(self, patience_s: float = PART_S) -> None:
        """Close all connections, and cut off those that do not take their answers."""
        for connection in list(self.connections.values()):
            connection.finish()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.deserted.wait(), patience_s)
        for connection in list(self.connections.values()):
            connection.abort()
        await self.deserted.wait()

    async def stop(self) -> None:
        """Begin nothing more; return when what is under way has ended."""
        self._stopped = True
        self._syncer.stop()
        self._writer.stop()
        if self._tidier is not None:
            self._tidier.stop()
        # Done in the threads, and to be noted here; what is in doubt stays so.
        while self._store or self._upkeep or (self._commit and not self._doubted):
            self._ended.clear()
            await self._ended.wait()

    def _turn(self) -> None:
        self._scheduled = False
        if self._doubted and not self._stopped:
            self._look_again()
        if not self._stopped:
            self._begin_upkeep()  # which may have something for the other two
            self._begin_commit()
            self._begin_store()
        self._send()
        if self._paused and not self.congested:
            paused, self._paused = self._paused, {}
            for connection in paused:
                connection.resume()
        if self._asking:
            self._answer()
        if self._draining and self.idle and not self.broker.dirty:
            self._ended.set()

    def _answer(self) -> None:
        """Let connections that asked go on in turn; those left have the next turn."""
        until_s = time.perf_counter() + QUESTIONS_S
        while self._asking:
            connection = next(iter(self._asking))
            del self._asking[connection]
            connection.go_on()
            if time.perf_counter() > until_s:
                break
        if self._asking:
            self.kick()

    def _begin_commit(self) -> None:
        if self._commit is not None:
            return
        now_s = self.now_s()
        if now_s < self._held_until_s or not self._wanted(now_s):
            return
        commit = self._log.begin_commit()
        if commit is not None:
            self._commit = commit
            self._lazy_since_s = 0.0
            self._began_s = time.perf_counter()
            if not commit.blocks:  # what takes less time than the way to a thread
                commit.run()
                self._commit_done()
            elif not commit.brief:
                self._syncer.submit(commit.run, self._commit_done)
            elif self._pace.is_short(commit.size):
                self._run_brief()
                self._brief_done()
            else:
                self._syncer.submit(self._run_brief, self._brief_done)

    def _run_brief(self) -> None:
        """Run the commit, and measure it; in any thread."""
        assert self._commit is not None
        began_s = time.perf_counter()
        self._commit.run()
        self._took_s = time.perf_counter() - began_s

    def _brief_done(self) -> None:
        assert self._commit is not None
        self._pace.took(self._commit.size, self._took_s)
        self._commit_done()

    def _wanted(self, now_s: float) -> bool:
        log = self._log
        if self.broker.urgent or log.checkpoint_wanted or log.doubt is not None:
            return True
        if not self.broker.dirty:
            return False
        self._lazy_since_s = self._lazy_since_s or now_s
        return self._draining or now_s - self._lazy_since_s >= LAZY_S

    def _commit_done(self) -> None:
        commit = self._commit
        assert commit is not None, "one commit at a time"
        if commit.doubt is not None:
            self._doubt(commit.doubt)
            return
        self._commit = None
        if commit.sync:
            self.broker.traffic.synced(time.perf_counter() - self._began_s)
        self._log.end_commit(commit)
        if self._log.outcome(commit.number) == "failed":
            self._held_until_s = self.now_s() + RETRY_S
        self._after_work()

    def _doubt(self, doubt: InDoubt) -> None:
        """What became of the group is not known: nothing is told, it is tried again."""
        self._doubted = True
        self._held_until_s = self.now_s() + RETRY_S
        logger.error("nothing is confirmed: %s", doubt, extra={"action": "in_doubt"})
        self._after_work()

    def _look_again(self) -> None:
        """Find out what became of the commit in doubt, when it is time."""
        if self._commit is not None and self.now_s() >= self._held_until_s:
            self._doubted = False
            self._syncer.submit(self._commit.run, self._commit_done)

    def _begin_store(self) -> None:
        if self._store is None and (work := self._log.begin_store()) is not None:
            self._store = work
            self._writer.submit(work.run, self._store_done)

    def _store_done(self) -> None:
        work, self._store = self._store, None
        assert work is not None, "one piece of work at a time"
        self._log.end_store(work)
        self._after_work()

    def _begin_upkeep(self) -> None:
        if self._upkeep is None and (work := self._log.begin_upkeep()) is not None:
            self._upkeep = work
            if self._tidier is None:
                self._tidier = Worker(self.loop, "penstock-tidy")
            self._tidier.submit(work.run, self._upkeep_done)

    def _upkeep_done(self) -> None:
        work, self._upkeep = self._upkeep, None
        assert work is not None, "one step at a time"
        self._log.end_upkeep(work)
        self._after_work()

    def _after_work(self) -> None:
        self._ended.set()
        self.kick()

    def _send(self) -> None:
        awake = self.broker.awake
        if not awake:
            return
        turn = list(awake)
        awake.clear()
        now_s = self.now_s()
        for gateway in turn:
            woken = self.members.get(gateway) or self.connections.get(
                gateway  # type: ignore[call-overload]
            )
            if woken is not None:
                woken.flush(now_s)
        if awake:  # some of them have more
            self.kick()
