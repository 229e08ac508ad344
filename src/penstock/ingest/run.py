"""The life of an ingest: open the feeds, read and store, tell how far it is, end.

Each stream has a task that reads and one that stores in a thread, with an intake
between them. When it is told to end, what was read is stored.

What the broker refuses (too large, not of the schema) is looked for by halves, so that
everything else is stored, in its order, and what is refused becomes a dead letter.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import uvloop

from penstock.client import connect
from penstock.client.address import ServerAddress
from penstock.client.feed import RETRY_S, Feed
from penstock.client.lasting import PAUSE_S
from penstock.errors import (
    ConnectionLost,
    InvalidBatch,
    InvalidPayload,
    NotRunning,
    TooLarge,
)
from penstock.ingest.intake import StreamBuffer
from penstock.ingest.options import Address, SseOptions
from penstock.ingest.sorting import Sorted, Sorter, StreamNote
from penstock.ingest.source import StreamSource
from penstock.wire.sse import ServerSentEvent

# Errors of a broker that lie in an event, and not in what surrounds it.
UNFIT = (InvalidBatch, InvalidPayload, TooLarge)
# What remains of an event when even its dead letter is too large.
STUB_BYTES = 256


class Storer:
    """Stores what comes; blocking, for one thread at a time."""

    def __init__(self, feed: Feed, options: SseOptions, source: str) -> None:
        self.note = StreamNote.of(feed.note)
        self._feed = feed
        self._options = options
        self._sorter = Sorter(options, source)

    def store(self, events: Sequence[ServerSentEvent]) -> None:
        """It is on disk when this returns. Raises what ``Feed.put`` does."""
        try:
            self._put(self._sorter.sort(events, self.note))
        except UNFIT as error:
            if len(events) == 1:
                self._bury(events[0], str(error))
                return
            half = len(events) // 2
            self.store(events[:half])
            self.store(events[half:])

    def _bury(self, event: ServerSentEvent, reason: str) -> None:
        try:
            self._put(self._sorter.refused(event, self.note, reason))
        except UNFIT:
            stub = event._replace(data=event.data[:STUB_BYTES])
            self._put(self._sorter.refused(stub, self.note, reason))

    def _put(self, batch: Sorted) -> None:
        at_ms = time.time_ns() // 1_000_000
        self._feed.put(
            batch.batches(self._options, at_ms),
            note=batch.note.text(),
            letters=batch.letters,
        )
        self.note = batch.note


logger = logging.getLogger(__name__)

GATEWAY = "ingest sse"
# Between looks whether it is to end.
WATCH_S = 0.05
# One try to reach a broker.
TRY_S = 5.0


class IngestReport(Protocol):
    """Who starts it: says when to end, and is told how far it is."""

    @property
    def stopping(self) -> threading.Event: ...
    def ready(self, **info: object) -> None: ...
    def tell(self, *, events: int, **info: object) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetServer:
    """Where the events go."""

    address: str | os.PathLike[str] | ServerAddress
    user: str | None = None
    password: str | None = None
    token: str | None = None

    def wait(self, stopping: threading.Event) -> bool:
        """Wait for a broker that is away; False if it is to end before that.

        Raises NotRunning, ConnectionLost after a while; ServerRefused.
        """
        deadline_s = time.monotonic() + RETRY_S
        awaited = False
        while not stopping.is_set():
            try:
                connect(
                    self.address,
                    user=self.user,
                    password=self.password,
                    token=self.token,
                    timeout_s=TRY_S,
                ).close()
                return True
            except (NotRunning, ConnectionLost) as error:
                if time.monotonic() >= deadline_s:
                    raise
                if not awaited:
                    action = {"action": "broker_awaited"}
                    logger.warning("%s; waiting for it", error, extra=action)
                awaited = True
                stopping.wait(PAUSE_S)
        return False

    def open(self, name: str) -> Feed:
        return Feed(
            self.address,
            name,
            gateway=GATEWAY,
            user=self.user,
            password=self.password,
            token=self.token,
        )


def run(
    streams: Sequence[Address],
    options: SseOptions,
    server: TargetServer,
    watched: IngestReport,
) -> None:
    """Take in streams until told to stop, or until all are over if that is wanted.

    Raises PenstockError: a stream that is none, a broker that refuses or is away for
    too long.
    """
    if not server.wait(watched.stopping):
        return
    with contextlib.ExitStack() as stack:
        feeds = [stack.enter_context(server.open(one.feed)) for one in streams]
        connectors = [
            Connector(address, feed, options)
            for address, feed in zip(streams, feeds, strict=True)
        ]
        watched.ready(feeds=[feed.name for feed in feeds])
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_run(connectors, options, watched))


class Connector:
    """One stream on its way into its topic."""

    def __init__(self, address: Address, feed: Feed, options: SseOptions) -> None:
        self.address = address
        self.storer = Storer(feed, options, address.shown)
        self.source = StreamSource(
            address, self.storer.note.last_event_id, silence_s=options.silence_s
        )
        self.intake = StreamBuffer(linger_s=options.linger_s)
        self.storing = 0
        self.over = False

    async def run(self, stop: asyncio.Event) -> None:
        """Until the stream is over, or until ``stop``; raises PenstockError."""
        reading = asyncio.create_task(self._read())
        storing = asyncio.create_task(self._store())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait(
                [reading, storing, stopping], return_when=asyncio.FIRST_COMPLETED
            )
            if not storing.done():
                await _ended(reading)
                self.intake.end()
            await storing
        finally:
            for task in (reading, storing, stopping):
                await _ended(task)
        if not reading.cancelled():
            reading.result()

    async def _read(self) -> None:
        async with contextlib.aclosing(self.source.events()) as read:
            async for events in read:
                await self.intake.put(events)
        self.over = True

    async def _store(self) -> None:
        while batch := await self.intake.take():
            self.storing = len(batch)
            await asyncio.to_thread(self.storer.store, batch)
            self.storing = 0


async def _run(
    connectors: Sequence[Connector], options: SseOptions, watched: IngestReport
) -> None:
    stop = asyncio.Event()
    tasks = [asyncio.create_task(one.run(stop)) for one in connectors]
    try:
        while not _is_done(tasks, options, watched):
            _tell(connectors, watched)
            if watched.stopping.is_set():
                stop.set()
            await asyncio.sleep(WATCH_S)
    finally:
        stop.set()
        await asyncio.wait(tasks)
        _tell(connectors, watched)
    for task in tasks:
        task.result()


def _is_done(
    tasks: Sequence[asyncio.Task[None]], options: SseOptions, watched: IngestReport
) -> bool:
    """All are over, or one has failed."""
    if any(task.done() and task.exception() for task in tasks):
        return True
    may_end = options.until_end or watched.stopping.is_set()
    return may_end and all(task.done() for task in tasks)


def _tell(connectors: Sequence[Connector], watched: IngestReport) -> None:
    notes = [one.storer.note for one in connectors]
    panics = sum(note.panics for note in notes)
    malformed = sum(note.malformed for note in notes)
    watched.tell(
        events=sum(note.received for note in notes),
        lag=sum(len(one.intake) + one.storing for one in connectors),
        errors=sum(one.source.failures for one in connectors),
        panics=panics,
        malformed=malformed,
        letters=panics + malformed,
        connected=sum(one.source.connected for one in connectors),
        over=sum(one.over for one in connectors),
        sources={
            one.address.shown: note.last_event_id
            for one, note in zip(connectors, notes, strict=True)
        },
    )


async def _ended(task: asyncio.Task[object]) -> None:
    """Cancel a task and wait for it; what it raised stays in it."""
    task.cancel()
    await asyncio.wait([task])
