"""The broker of an async program.

    async with penstock.open("data") as broker:
        await broker.start(billing, shipping)
        await broker.publish(orders, Order(...))
        await broker.run()

Everything happens on the loop it was opened on. Leaving the block lets handlers that
run finish, stores everything, and closes.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import signal
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, overload

from penstock.client.plan import Plan, drive
from penstock.desk import desk as _desk  # noqa: F401
from penstock.desk.verbs import BY, SIGNED
from penstock.embedded.domain import Domain
from penstock.embedded.handler import Handler
from penstock.embedded.link import Link
from penstock.embedded.outgoing import Intent, PublishOptions, Stored, traced
from penstock.embedded.runner import Runner
from penstock.embedded.schemas import TopicBook
from penstock.embedded.topic import Topic
from penstock.errors import BrokerClosed, NotSettled, StartedTwice

if TYPE_CHECKING:
    from penstock.tracing.spans import Tracing


# The desk is what fills the list of verbs.


def author(name: str) -> str:
    """The name of the program, or else the user of this machine that runs it."""
    if name:
        return name
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return f"uid {os.getuid()}"


def signed(verb: str, arguments: Mapping[str, object], by: str) -> Mapping[str, object]:
    """The arguments of an order with who gives it, if it is written down."""
    if arguments.get(BY) or verb not in SIGNED:
        return arguments
    return {**arguments, BY: by}


T = TypeVar("T")
R = TypeVar("R")

# How long handlers that run may take when the broker is closed.
GRACE_S = 5.0
# The verb that takes with a topic what is known of it.
DELETE = "topics.delete"


class AsyncBroker:
    """Publishes, runs handlers, and answers questions. Made by ``penstock.open``."""

    def __init__(
        self, link: Link, name: str = "", tracing: Tracing | None = None
    ) -> None:
        self._link = link
        self._name = name
        self._tracing = tracing
        self._loop = asyncio.get_running_loop()
        self._runners: list[Runner] = []
        self._domains: dict[str, Domain] = {}
        self._by = author(name)
        self._book = TopicBook(link, self._by)
        self._stop = asyncio.Event()
        self._closing = False
        self._closed = False
        """Whether nothing is taken any more, not even of handlers that run."""

    # Publishing

    @overload
    async def publish(
        self,
        topic: Topic[T],
        payload: T,
        **more: Unpack[PublishOptions],
    ) -> Stored: ...

    @overload
    async def publish(
        self,
        topic: str,
        payload: object,
        **more: Unpack[PublishOptions],
    ) -> Stored: ...

    async def publish(
        self,
        topic: Topic[Any] | str,
        payload: Any,
        **more: Unpack[PublishOptions],
    ) -> Stored:
        """Publish one event; when this returns it is on disk.

        Raises UnfitPayload, InvalidPayload, InvalidName, InvalidBatch, WriteFailed,
        BrokerClosed.
        """
        self._check_open()
        if isinstance(topic, Topic) and not self._book.knows(topic):
            await self._book.add(topic)
        intent = Intent.of(topic, payload, self._link.clock, **more)
        if self._tracing is None:
            return await self._link.publish(intent)
        with traced(self._tracing, [intent], self._name) as (intent,):
            return await self._link.publish(intent)

    @overload
    async def publish_many(
        self, topic: Topic[T], payloads: Iterable[T]
    ) -> list[Stored]: ...

    @overload
    async def publish_many(
        self, topic: str, payloads: Iterable[object]
    ) -> list[Stored]: ...

    async def publish_many(
        self, topic: Topic[Any] | str, payloads: Iterable[Any]
    ) -> list[Stored]:
        """Publish events that have payloads only; all are on disk when this returns.

        If one of them is refused the others may be stored: publish them one by one
        with ``publish`` where that matters.
        """
        self._check_open()
        if isinstance(topic, Topic) and not self._book.knows(topic):
            await self._book.add(topic)
        intents = [Intent.of(topic, payload) for payload in payloads]
        if self._tracing is None or not intents:
            return await self._link.publish_many(intents)
        with traced(self._tracing, intents, self._name) as intents:
            return await self._link.publish_many(intents)

    # Handling

    async def start(self, *domains: Domain) -> None:
        """Subscribe the handlers of domains, and begin to run them: all, or none.

        Raises StartedTwice, IncompatibleSchema, WrongOrder, LimitReached.
        """
        if self._closing:
            raise BrokerClosed
        running = dict(self._domains)
        for domain in domains:
            known = running.get(domain.name)
            if known is not None:
                first = next((one.where for one in known), "a domain without handlers")
                raise StartedTwice(domain.name, first)
            running[domain.name] = domain
        self._domains = running
        begun: list[Runner] = []
        try:
            for handler in (one for domain in domains for one in domain):
                if handler.typed is not None:
                    await self._book.add(handler.typed)
            for domain in domains:
                for handler in domain:
                    begun.append(await self._subscribed(domain, handler))
        except BaseException:
            await self._take_back(domains, begun)
            raise
        for runner in begun:
            runner.channel.wake()

    async def _subscribed(self, domain: Domain, handler: Handler) -> Runner:
        link = self._link
        runner = Runner(handler, domain.name, link.clock, self._loop, self._book)
        runner.tracer = self._tracing
        runner.channel = await link.subscribe(runner)
        self._runners.append(runner)
        return runner

    async def _take_back(
        self, domains: Iterable[Domain], begun: Iterable[Runner]
    ) -> None:
        """Some of the domains cannot be started: none is."""
        for domain in domains:
            self._domains.pop(domain.name, None)
        for runner in begun:
            self._runners.remove(runner)
            await runner.close(GRACE_S)
            self._link.drop(runner)

    async def run(self, *domains: Domain) -> None:
        """Start domains, and go on until SIGINT, SIGTERM or ``stop``."""
        caught = {}
        # Before the handlers run: the first of them may already ask for the end.
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)
            # Signals are for the main thread; elsewhere the program calls stop().
            with suppress(NotImplementedError, RuntimeError, ValueError):
                self._loop.add_signal_handler(number, self.stop)
                caught[number] = before
        try:
            await self.start(*domains)
            await self._stop.wait()
        finally:
            for number, before in caught.items():
                self._loop.remove_signal_handler(number)
                signal.signal(number, before)

    def stop(self) -> None:
        """Have ``run`` return."""
        self._stop.set()

    async def wait_until_settled(self, timeout_s: float | None = None) -> None:
        """Return when every event of the handlers' topics is settled or given up.

        Raises NotSettled, which says what is left, after ``timeout_s``.
        """
        self._check_open()
        try:
            async with asyncio.timeout(timeout_s):
                while not await self._link.settled(self._runners):
                    await self._link.turn()
        except TimeoutError:
            left = [one for one in self._runners if not one.idle] or self._runners
            names = [f"{one.subscriber} of {one.handler.topic}" for one in left]
            raise NotSettled(timeout_s or 0.0, names) from None

    # Questions

    @overload
    async def ask(self, question: Plan[R]) -> R: ...

    @overload
    async def ask(self, question: str, **arguments: object) -> object: ...

    async def ask(self, question: Plan[Any] | str, **arguments: object) -> Any:
        """Ask the desk: one of the plans of ``penstock.desk``, or a verb.

        The verbs are in docs/protocols/native.md. Orders that are written down with
        who gave them are given by the name of the broker, unless ``by`` is said.
        """
        if isinstance(question, str):
            return await self._ask(question, arguments)
        return await drive(question, self._ask, asyncio.sleep)

    async def _ask(self, verb: str, arguments: Mapping[str, object]) -> object:
        self._check_open()
        answer = await self._link.ask(verb, signed(verb, arguments, self._by))
        if verb == DELETE:
            self._book.forget(arguments.get("name"))
        return answer

    # Ending

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Let what runs finish, store everything, and let go.

        Handlers may publish until they have ended; then nothing is taken any more.
        """
        self._stop.set()
        if self._closing:
            return
        self._closing = True
        try:
            await asyncio.gather(*(one.close(grace_s) for one in self._runners))
        finally:
            self._closed = True
            await self._link.close()

    def _check_open(self) -> None:
        if self._closed:
            raise BrokerClosed
