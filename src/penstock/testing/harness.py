"""A broker for tests, with a clock that the test moves and accidents on order.

    async with penstock.testing.Harness() as broker:
        await broker.start(billing)
        await broker.publish(orders, Order(total=3))
        await broker.wait_until_settled()
        assert broker.events(payments)[0].payload == Payment(total=3)

Time stands still while anything can happen without it. Then it jumps to the next moment
that matters: a retry, the end of a handler's time, the end of a sleep. So minutes of
backoff take a moment, and the outcome does not depend on how fast the machine is.

What cannot be known is whether a handler that waits for something else than time (a
socket, a lock, a thread) will ever get it: it is given ``patience_s`` of real time.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, TypeVar, Unpack, overload

from penstock.client.plan import Plan, drive
from penstock.embedded import AsyncBroker, Domain, Event, LocalOptions, Stored, Topic
from penstock.embedded.local import LocalLink
from penstock.embedded.local_broker import open_broker
from penstock.embedded.outgoing import PublishOptions
from penstock.testing.clock import VirtualClock
from penstock.testing.crashdisk import CrashDisk
from penstock.testing.disk import FaultyDisk, UnsyncedFiles
from penstock.testing.faults import Error, Faults, InjectedFault
from penstock.testing.inspector import FailedTry, Inspector, LetterView
from penstock.testing.pace import VirtualPace
from penstock.testing.timers import install, uninstall

T = TypeVar("T")
R = TypeVar("R")

# Real time that a handler gets which waits for something else than time.
PATIENCE_S = 1.0
# Where a disk in memory has its data directory.
IN_MEMORY = "/penstock"


class AsyncHarness:
    """The broker of an async test. Made by ``Harness``."""

    def __init__(
        self,
        path: str | None,
        options: LocalOptions,
        clock: VirtualClock,
        patience_s: float,
    ) -> None:
        self.clock = clock
        self.disk = FaultyDisk(CrashDisk() if path is None else UnsyncedFiles())
        """Accidents: ``disk.fill()``, ``disk.fail_syncs()``, ``disk.heal()``."""
        self._path = IN_MEMORY if path is None else path
        self._options = options
        self._patience_s = patience_s
        self._loop = asyncio.get_running_loop()
        self._faults = Faults()
        self._domains: list[Domain] = []
        self._handled: Counter[tuple[str, str]] = Counter()
        self._failed: Counter[tuple[str, str]] = Counter()
        self._types: dict[str, Topic[Any]] = {}
        install(self._loop)
        try:
            self._open()
        except BaseException:
            uninstall(self._loop)
            raise

    def _open(self) -> None:
        broker = open_broker(self._path, self._options, self.clock, self.disk)
        self._link = LocalLink(broker, self.clock, self._loop)
        self._pace = VirtualPace(self._link, self.clock, self._faults, self._patience_s)
        self._broker = AsyncBroker(self._link)
        self._look = Inspector(broker)

    # What a broker does

    @overload
    async def publish(
        self, topic: Topic[T], payload: T, **more: Unpack[PublishOptions]
    ) -> Stored: ...

    @overload
    async def publish(
        self, topic: str, payload: object, **more: Unpack[PublishOptions]
    ) -> Stored: ...

    async def publish(
        self, topic: Any, payload: Any, **more: Unpack[PublishOptions]
    ) -> Stored:
        """Publish one event; see AsyncBroker."""
        self._learn(topic)
        work = self._broker.publish(topic, payload, **more)
        return await self._pace.through(work)

    @overload
    async def publish_many(
        self, topic: Topic[T], payloads: Iterable[T]
    ) -> list[Stored]: ...

    @overload
    async def publish_many(
        self, topic: str, payloads: Iterable[object]
    ) -> list[Stored]: ...

    async def publish_many(self, topic: Any, payloads: Iterable[Any]) -> list[Stored]:
        """Publish events that have payloads only; see AsyncBroker."""
        self._learn(topic)
        return await self._pace.through(self._broker.publish_many(topic, payloads))

    async def start(self, *domains: Domain) -> None:
        """Subscribe the handlers of domains, and begin to run them."""
        watched = map(self._pace.calls.watched, domains)
        await self._pace.through(self._broker.start(*watched))
        self._domains += domains
        for domain in domains:
            for handler in domain:
                self._learn(handler.typed)

    @overload
    async def ask(self, question: Plan[R]) -> R: ...

    @overload
    async def ask(self, question: str, **arguments: object) -> object: ...

    async def ask(self, question: Plan[Any] | str, **arguments: object) -> Any:
        """Ask the desk: one of the plans of ``penstock.desk``, or a verb."""
        if isinstance(question, str):
            return await self._ask(question, arguments)
        return await drive(question, self._ask, self.advance)

    # Time

    async def wait_until_settled(self, timeout_s: float | None = None) -> None:
        """Return when every event of the handlers' topics is settled or given up.

        The clock jumps over every pause. Raises NotSettled when ``timeout_s`` of
        virtual time are over, when nothing is going to happen any more, or when
        handlers keep each other busy for ever.
        """
        await self._pace.settle(timeout_s)

    async def advance(self, seconds: float) -> None:
        """Let virtual time pass, and everything happen that is due meanwhile."""
        await self._pace.advance(seconds)

    # What came of it

    @overload
    def events(self, topic: Topic[T]) -> list[Event[T]]: ...

    @overload
    def events(self, topic: str) -> list[Event[Any]]: ...

    def events(self, topic: Topic[Any] | str) -> list[Event[Any]]:
        """Every event of a topic, in its order; none if there is no such topic.

        For a name alone the payloads are of the type it was used with, or bytes.
        """
        name = topic if isinstance(topic, str) else topic.name
        known = self._types.get(name) if isinstance(topic, str) else topic
        return self._look.events(name, None if known is None else known.codec)

    def dead_letters(self) -> list[LetterView]:
        """Events that were given up and not seen to yet, the oldest first."""
        return self._look.dead_letters()

    def errors(self) -> list[FailedTry]:
        """Every try that failed, the oldest first."""
        return self._look.errors()

    def handled(self, domain: Domain | str, topic: Topic[Any] | str = "") -> int:
        """How many events a domain has handled, of one topic or of all."""
        counts = self._handled.copy()
        for one in self._link.runners:
            counts[one.subscriber, one.handler.topic] += one.handled
        return _sum(counts, domain, topic)

    def failed(self, domain: Domain | str, topic: Topic[Any] | str = "") -> int:
        """How many tries of a domain have failed, of one topic or of all."""
        counts = self._failed.copy()
        for one in self._link.runners:
            counts[one.subscriber, one.handler.topic] += one.failed
        return _sum(counts, domain, topic)

    # Accidents

    def fail(
        self,
        domain: Domain | str,
        topic: Topic[Any] | str,
        *,
        times: int | None = 1,
        error: Error = InjectedFault,
    ) -> None:
        """Have the next calls of a handler raise instead; None: all of them."""
        self._faults.fail((_name(domain), _name(topic)), times, error)

    def slow(
        self,
        domain: Domain | str,
        topic: Topic[Any] | str,
        seconds: float,
        *,
        times: int | None = 1,
    ) -> None:
        """Have the next calls of a handler take virtual time before they begin."""
        self._faults.slow((_name(domain), _name(topic)), times, seconds)

    def heal(self) -> None:
        """Take back all accidents that are still to come, those of the disk too."""
        self._faults.heal()
        self.disk.heal()

    async def crash(self, seed: int = 0) -> None:
        """Lose power, and come back with the same domains.

        In memory, what was not synced may be lost, in whole or in part: ``seed``
        decides. On a real disk the process is as if killed, and nothing is lost that
        was written. Handlers that run are stopped, those in threads left alone.
        Accidents that are still to come are taken back, those of the disk too.
        """
        if isinstance(self.disk.under, CrashDisk):
            survivor = FaultyDisk(self.disk.under.crashed(Random(seed)))
            await self._abandon()
            self.disk = survivor
        else:
            await self._abandon()
            self.disk.heal()
        await self._again()

    async def restart(self) -> None:
        """Close and open again, with the same domains."""
        await self._shut()
        await self._again()

    async def close(self) -> None:
        """Let go; events that are under way stay as they are."""
        try:
            await self._shut()
        finally:
            uninstall(self._loop)

    # Within

    async def _ask(self, verb: str, arguments: Mapping[str, object]) -> object:
        return await self._pace.through(self._broker.ask(verb, **arguments))

    def _learn(self, topic: Topic[Any] | str | None) -> None:
        if isinstance(topic, Topic):
            self._types[topic.name] = topic

    # Ending, and beginning again

    async def _shut(self) -> None:
        self.heal()
        self._pace.past_the_pause()
        self._count()
        await self._broker.close(grace_s=0.0)
        self._pace.close()

    async def _abandon(self) -> None:
        self._faults.heal()
        self._count()
        link = self._link
        await asyncio.gather(*(one.abandon() for one in link.runners))
        self._pace.close()
        await link.engine.stop()
        link.broker.log.abandon()

    async def _again(self) -> None:
        self._open()
        domains, self._domains = self._domains, []
        await self.start(*domains)

    def _count(self) -> None:
        for one in self._link.runners:
            self._handled[one.subscriber, one.handler.topic] += one.handled
            self._failed[one.subscriber, one.handler.topic] += one.failed


def _name(thing: Domain | Topic[Any] | str) -> str:
    return thing if isinstance(thing, str) else thing.name


def _sum(
    counts: Counter[tuple[str, str]],
    domain: Domain | str,
    topic: Topic[Any] | str,
) -> int:
    wanted = _name(topic)
    return sum(
        count
        for (subscriber, name), count in counts.items()
        if subscriber == _name(domain) and wanted in ("", name)
    )
