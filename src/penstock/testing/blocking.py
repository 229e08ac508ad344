"""``Harness``: a broker for a test, whether the test is async or not.

    with Harness() as broker:                 async with Harness() as broker:
        broker.start(billing)                     await broker.start(billing)
        broker.publish(orders, order)             await broker.publish(orders, order)
        broker.wait_until_settled()               await broker.wait_until_settled()

In a test that is not async nothing happens behind its back: handlers run while the test
is in a call of the harness, and stand still in between. (Those that are not async run
in threads, and go on until they call the harness themselves.)
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack, overload

from penstock.client.plan import Plan
from penstock.embedded import Domain, Event, LocalOptions, Stored, Topic
from penstock.embedded.outgoing import PublishOptions
from penstock.testing.clock import VirtualClock
from penstock.testing.disk import FaultyDisk
from penstock.testing.faults import Error, InjectedFault
from penstock.testing.harness import PATIENCE_S, AsyncHarness
from penstock.testing.inspector import FailedTry, LetterView

T = TypeVar("T")
R = TypeVar("R")

_ASYNC = "this is async code: say ``async with harness as broker``, and await"


class Harness:
    """A broker in memory, or in a directory ``path``; opened when it is first used.

    It is its own blocking flavour: AsyncHarness has the same words, to be awaited.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        options: LocalOptions | None = None,
        clock: VirtualClock | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.clock = clock or VirtualClock()
        self._path = None if path is None else os.fspath(path)
        self._options = options or LocalOptions()
        self._patience_s = patience_s
        self._runner: asyncio.Runner | None = None
        self._thread = 0
        """The thread that opened it, in which everything happens."""
        self._harness: AsyncHarness | None = None

    # For async tests

    async def __aenter__(self) -> AsyncHarness:
        if self._harness is not None:
            raise RuntimeError("this harness is open already")
        self._harness = self._make()
        return self._harness

    async def __aexit__(self, *_: object) -> None:
        harness, self._harness = self._harness, None
        assert harness is not None, "entered before"
        await harness.close()

    # For others

    def __enter__(self) -> Self:
        self._opened()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @overload
    def publish(
        self, topic: Topic[T], payload: T, **more: Unpack[PublishOptions]
    ) -> Stored: ...

    @overload
    def publish(
        self, topic: str, payload: object, **more: Unpack[PublishOptions]
    ) -> Stored: ...

    def publish(
        self, topic: Any, payload: Any, **more: Unpack[PublishOptions]
    ) -> Stored:
        """Publish one event; see BlockingBroker."""
        return self._wait(lambda one: one.publish(topic, payload, **more))

    @overload
    def publish_many(self, topic: Topic[T], payloads: Iterable[T]) -> list[Stored]: ...

    @overload
    def publish_many(self, topic: str, payloads: Iterable[object]) -> list[Stored]: ...

    def publish_many(self, topic: Any, payloads: Iterable[Any]) -> list[Stored]:
        """Publish events that have payloads only; see BlockingBroker."""
        return self._wait(lambda one: one.publish_many(topic, payloads))

    def start(self, *domains: Domain) -> None:
        """Subscribe the handlers of domains, and begin to run them."""
        self._wait(lambda one: one.start(*domains))

    @overload
    def ask(self, question: Plan[R]) -> R: ...

    @overload
    def ask(self, question: str, **arguments: object) -> object: ...

    def ask(self, question: Any, **arguments: object) -> Any:
        """Ask the desk: one of the plans of ``penstock.desk``, or a verb."""
        return self._wait(lambda one: one.ask(question, **arguments))

    def wait_until_settled(self, timeout_s: float | None = None) -> None:
        """Return when every event of the handlers' topics is settled or given up."""
        self._wait(lambda one: one.wait_until_settled(timeout_s))

    def advance(self, seconds: float) -> None:
        """Let virtual time pass, and everything happen that is due meanwhile."""
        self._wait(lambda one: one.advance(seconds))

    @overload
    def events(self, topic: Topic[T]) -> list[Event[T]]: ...

    @overload
    def events(self, topic: str) -> list[Event[Any]]: ...

    def events(self, topic: Any) -> list[Event[Any]]:
        """Every event of a topic, in its order; none if there is no such topic."""
        return self._opened().events(topic)

    def dead_letters(self) -> list[LetterView]:
        """Events that were given up and not seen to yet, the oldest first."""
        return self._opened().dead_letters()

    def errors(self) -> list[FailedTry]:
        """Every try that failed, the oldest first."""
        return self._opened().errors()

    def handled(self, domain: Domain | str, topic: Topic[Any] | str = "") -> int:
        """How many events a domain has handled, of one topic or of all."""
        return self._opened().handled(domain, topic)

    def failed(self, domain: Domain | str, topic: Topic[Any] | str = "") -> int:
        """How many tries of a domain have failed, of one topic or of all."""
        return self._opened().failed(domain, topic)

    @property
    def disk(self) -> FaultyDisk:
        """Accidents: ``disk.fill()``, ``disk.fail_syncs()``, ``disk.heal()``."""
        return self._opened().disk

    def fail(
        self,
        domain: Domain | str,
        topic: Topic[Any] | str,
        *,
        times: int | None = 1,
        error: Error = InjectedFault,
    ) -> None:
        """Have the next calls of a handler raise instead; None: all of them."""
        self._opened().fail(domain, topic, times=times, error=error)

    def slow(
        self,
        domain: Domain | str,
        topic: Topic[Any] | str,
        seconds: float,
        *,
        times: int | None = 1,
    ) -> None:
        """Have the next calls of a handler take virtual time before they begin."""
        self._opened().slow(domain, topic, seconds, times=times)

    def heal(self) -> None:
        """Take back all accidents that are still to come, those of the disk too."""
        self._opened().heal()

    def crash(self, seed: int = 0) -> None:
        """Lose power, and come back with the same domains; see AsyncHarness."""
        self._wait(lambda one: one.crash(seed))

    def restart(self) -> None:
        """Close and open again, with the same domains."""
        self._wait(lambda one: one.restart())

    def close(self) -> None:
        """Let go, if it was opened; events that are under way stay as they are."""
        if self._runner is None:
            return
        try:
            if self._harness is not None:
                self._wait(lambda one: one.close())
        finally:
            self._harness = None
            self._runner.close()
            self._runner = None

    # Within

    def _make(self) -> AsyncHarness:
        return AsyncHarness(self._path, self._options, self.clock, self._patience_s)

    def _opened(self) -> AsyncHarness:
        if self._harness is None:
            self._run(self._begin)
        assert self._harness is not None, "opened above"
        return self._harness

    async def _begin(self) -> None:
        self._harness = self._make()

    def _wait(self, act: Callable[[AsyncHarness], Awaitable[R]]) -> R:
        harness = self._opened()

        async def waited() -> R:
            return await act(harness)

        return self._run(waited)

    def _run(self, act: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Run a coroutine on the loop of this harness."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise RuntimeError(_ASYNC)
        if self._runner is None:
            self._runner = asyncio.Runner(loop_factory=asyncio.SelectorEventLoop)
            self._thread = threading.get_ident()
        if threading.get_ident() != self._thread:
            # A handler: it is seen to while the test is in a call, as everything is.
            loop = self._runner.get_loop()
            return asyncio.run_coroutine_threadsafe(act(), loop).result()
        return self._runner.run(act())
