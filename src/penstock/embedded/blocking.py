"""The broker of a program without an event loop.

    with penstock.open("data") as broker:
        broker.start(billing, shipping)
        broker.publish(orders, Order(...))
        broker.run()

An event loop runs in a thread of its own; every call waits for it. So many threads may
use one broker, and handlers run beside whatever the program does.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine, Iterable
from concurrent.futures import CancelledError
from typing import Any, TypeVar, Unpack, overload

import uvloop

from penstock.client.plan import Plan
from penstock.embedded.aio import GRACE_S, AsyncBroker
from penstock.embedded.domain import Domain
from penstock.embedded.outgoing import PublishOptions, Stored
from penstock.embedded.topic import Topic
from penstock.errors import BrokerClosed

T = TypeVar("T")
R = TypeVar("R")

# What does not end when it is cancelled is left behind after that.
STOP_S = 1.0


class LoopThread:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self.loop = uvloop.new_event_loop()
        self._thread = threading.Thread(
            target=self._run, name="penstock-loop", daemon=True
        )
        self._thread.start()

    def wait(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine there, and wait for what it returns."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("called in an async handler, which it would block")
        if self.loop.is_closed():
            coroutine.close()
            raise BrokerClosed
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        try:
            return future.result()
        except CancelledError:
            raise BrokerClosed from None
        except BaseException:
            future.cancel()  # Ctrl-C perhaps: no caller waits for it any more
            raise

    def stop(self) -> None:
        """End the loop; other threads that wait for it get a BrokerClosed."""
        self.wait(_cancel_others())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=STOP_S)


class BlockingBroker:
    """The twin of AsyncBroker: the same words, and each call waits."""

    def __init__(self, broker: AsyncBroker, thread: LoopThread) -> None:
        self._broker = broker
        self._thread = thread
        self._stopped = threading.Event()

    @overload
    def publish(
        self,
        topic: Topic[T],
        payload: T,
        **more: Unpack[PublishOptions],
    ) -> Stored: ...

    @overload
    def publish(
        self,
        topic: str,
        payload: object,
        **more: Unpack[PublishOptions],
    ) -> Stored: ...

    def publish(
        self, topic: Any, payload: Any, **more: Unpack[PublishOptions]
    ) -> Stored:
        """Publish one event; when this returns it is on disk."""
        return self._thread.wait(self._broker.publish(topic, payload, **more))

    @overload
    def publish_many(self, topic: Topic[T], payloads: Iterable[T]) -> list[Stored]: ...

    @overload
    def publish_many(self, topic: str, payloads: Iterable[object]) -> list[Stored]: ...

    def publish_many(self, topic: Any, payloads: Iterable[Any]) -> list[Stored]:
        """Publish events that have payloads only; all are on disk when this returns."""
        return self._thread.wait(self._broker.publish_many(topic, payloads))

    def start(self, *domains: Domain) -> None:
        """Subscribe the handlers of domains, and begin to run them."""
        self._thread.wait(self._broker.start(*domains))

    def run(self, *domains: Domain) -> None:
        """Start domains, and go on until SIGINT, SIGTERM or ``stop``."""
        kept = {}
        # Before the handlers run: the first of them may already ask for the end.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                kept[number] = signal.signal(number, lambda *_: self.stop())
        try:
            self.start(*domains)
            self._stopped.wait()
        finally:
            for number, before in kept.items():
                signal.signal(number, before)

    def stop(self) -> None:
        """Have ``run`` return."""
        self._stopped.set()

    def wait_until_settled(self, timeout_s: float | None = None) -> None:
        """Return when every event of the handlers' topics is settled or given up."""
        self._thread.wait(self._broker.wait_until_settled(timeout_s))

    @overload
    def ask(self, question: Plan[R]) -> R: ...

    @overload
    def ask(self, question: str, **arguments: object) -> object: ...

    def ask(self, question: Any, **arguments: object) -> Any:
        """Ask the desk: one of the plans of ``penstock.desk``, or a verb."""
        return self._thread.wait(self._broker.ask(question, **arguments))

    def close(self, grace_s: float = GRACE_S) -> None:
        """Let what runs finish, store everything, and let go."""
        self._stopped.set()
        if self._thread.loop.is_closed():
            return
        try:
            self._thread.wait(self._broker.close(grace_s))
        finally:
            self._thread.stop()
