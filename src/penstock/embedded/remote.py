"""The broker of a server, reached over the network or the socket of its directory.

Handlers run here as they do beside a broker of their own; the server counts their
tries, waits and gives up. If the connection is lost it is made again, and whatever was
not settled comes again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import repeat

from penstock.client.address import address_of
from penstock.client.aio import AsyncClient, connect
from penstock.client.deliveries import Offsets
from penstock.client.sharing import Manner
from penstock.client.tls import Tls
from penstock.clock import Clock, SystemClock
from penstock.embedded.outgoing import Intent, Stored, by_topic
from penstock.embedded.remote_channel import RemoteChannel, outgoing
from penstock.embedded.runner import Runner
from penstock.errors import ConnectionLost, NotRunning, ServerRefused, TlsFailed
from penstock.gateway.native import SETTLED
from penstock.wire.native import Published

logger = logging.getLogger(__name__)

# Pause before a lost connection is made again, at first and at most.
PAUSE_S = 0.1
MAX_PAUSE_S = 5.0
# Between two looks at handlers that may have run too long.
TICK_S = 0.1
# Pause between two looks at how far a server has come.
LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class Target:
    """Where a server is, and who calls."""

    address: str
    user: str | None
    password: str | None
    name: str
    tls: Tls | None = None
    """Whom to trust, if the address begins with ``penstock+tls://``."""
    token: str | None = field(default=None, repr=False)

    async def connect(self) -> AsyncClient:
        where = address_of(self.address, self.tls)
        return await connect(
            where,
            user=self.user,
            password=self.password,
            token=self.token,
            name=self.name,
        )


def _stored(
    topic: str, calls: list[Intent], counts: list[int], answer: Published
) -> Iterable[Stored]:
    """Where the event of each call is."""
    given = [one.id for one in calls]
    offsets = Offsets.of(answer, len(calls), given)
    return map(Stored, repeat(topic), offsets, (id_ or "" for id_ in offsets.ids()))


_INTENTS = Manner(outgoing, _stored)


class RemoteLink:
    def __init__(self, target: Target, client: AsyncClient) -> None:
        self.clock: Clock
        self.clock = self._clock = SystemClock()
        self._target = target
        self._client = client
        self._lock = asyncio.Lock()
        self._closing = False
        self._channels: list[RemoteChannel] = []
        self._ticker = asyncio.create_task(self._tick_for_ever())

    @classmethod
    async def open(cls, target: Target) -> RemoteLink:
        """Connect; raises NotRunning, ServerRefused."""
        return cls(target, await target.connect())

    # Publishing

    async def publish(self, intent: Intent) -> Stored:
        client = self._client
        if client.lost or self._closing:
            client = await self.connected()
        return await client.publish_shared(
            _INTENTS,
            intent.topic,
            intent,
            1,
            len(intent.payload),
            once=intent.dedup_id is not None,
        )

    async def publish_many(self, intents: list[Intent]) -> list[Stored]:
        found: dict[int, Stored] = {}
        for topic, group in by_topic(intents).items():
            stored = await self._publish(topic, group)
            found.update((id(one), at) for one, at in zip(group, stored, strict=True))
        return [found[id(one)] for one in intents]

    async def _publish(self, topic: str, intents: list[Intent]) -> list[Stored]:
        client = await self.connected()
        events = outgoing(intents)
        offsets = await client.publish(
            topic,
            events.payloads,
            dedup_ids=events.dedup_ids,
            **events.columns.given(),
        )
        ids = (id_ or "" for id_ in offsets.ids())
        return list(map(Stored, repeat(topic), offsets, ids))

    # Subscribing

    async def subscribe(self, runner: Runner) -> RemoteChannel:
        channel = RemoteChannel(self, runner)
        await channel.open()
        self._channels.append(channel)
        return channel

    def drop(self, runner: Runner) -> None:
        self._channels = [one for one in self._channels if one.runner is not runner]

    def mark(self, topic: str) -> object:
        return self._client  # what happens to it meanwhile the server does not tell

    async def ask(self, verb: str, arguments: Mapping[str, object]) -> object:
        client = await self.connected()
        return await client.ask(verb, **arguments)

    # The connection

    async def connected(self, lost: AsyncClient | None = None) -> AsyncClient:
        """A connection that works, as far as is known; made again if need be.

        ``lost`` is the one that does not. Raises NotRunning, ServerRefused.
        """
        async with self._lock:
            if self._closing:
                raise ConnectionLost(self._target.address, "it was closed")
            if self._client is lost or self._client.lost:
                await self._client.close()
                self._client = await self._target.connect()
            return self._client

    async def reconnected(self, lost: AsyncClient | None) -> AsyncClient:
        """A connection, however long that takes."""
        pause_s = PAUSE_S
        while True:
            try:
                return await self.connected(lost)
            except (NotRunning, ConnectionLost, ServerRefused, TlsFailed) as error:
                logger.warning(
                    "%s; trying again in %g s",
                    error,
                    pause_s,
                    extra={"action": "reconnecting"},
                )
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, MAX_PAUSE_S)

    # Waiting and ending

    async def settled(self, runners: list[Runner]) -> bool:
        if not all(one.idle for one in runners):
            return False
        done = _ended(runners)
        try:
            for channel in self._channels:
                if not await channel.drained():
                    return False
            await self.ask(SETTLED, {})  # returns when all of that is on disk
        except (NotRunning, ConnectionLost):
            return False  # as far as is known
        # What ended meanwhile may have published to those that were asked before.
        return done == _ended(runners)

    async def turn(self) -> None:
        await asyncio.sleep(LOOK_S)

    async def close(self) -> None:
        self._closing = True
        self._ticker.cancel()
        await asyncio.wait([self._ticker])
        await self._client.close()

    async def _tick_for_ever(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            step_s = self._clock.was_set_s()
            now_s = self.clock.now_s()
            for channel in self._channels:
                channel.runner.shift(step_s)
                channel.runner.tick(now_s)


def _ended(runners: list[Runner]) -> int:
    """How many tries have ended, one way or the other."""
    return sum(one.handled + one.failed for one in runners)
