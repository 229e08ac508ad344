"""The blocking and the async client behind one face, so that one suite tests both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from penstock.client import aio, connect
from penstock.client.deliveries import Delivery, Offsets
from penstock.client.fetching import Range


class Blocking:
    """The blocking client as it is."""

    def __init__(self, data: Path, **options: Any) -> None:
        self._client = connect(data, **options)

    def publish(self, *arguments: Any, **named: Any) -> Offsets:
        return self._client.publish(*arguments, **named)

    def ask(self, verb: str, **arguments: Any) -> Any:
        return self._client.ask(verb, **arguments)

    def fetch(self, *arguments: Any, **named: Any) -> Range:
        return self._client.fetch(*arguments, **named)

    def stage(self, *arguments: Any, **named: Any) -> int:
        return self._client.stage(*arguments, **named)

    def subscribe(self, *arguments: Any, **named: Any) -> BlockingSubscription:
        return BlockingSubscription(self._client.subscribe(*arguments, **named))

    def close(self) -> None:
        self._client.close()

    @property
    def version(self) -> str:
        return self._client.server_version


class BlockingSubscription:
    def __init__(self, subscription: Any) -> None:
        self.it = subscription

    def take(self, count: int) -> list[Delivery]:
        return list(islice(self.it, count))

    def ack(self, delivery: Delivery) -> None:
        self.it.ack(delivery)

    def nack(self, delivery: Delivery, error: str, **named: Any) -> None:
        self.it.nack(delivery, error, **named)

    def flush(self) -> None:
        self.it.flush()

    def close(self) -> None:
        self.it.close()


class Async:
    """The async client, each call run to its end."""

    def __init__(self, data: Path, **options: Any) -> None:
        self._runner = asyncio.Runner()
        try:
            self._client = self._runner.run(aio.connect(data, **options))
        except BaseException:
            self._runner.close()
            raise

    def publish(self, *arguments: Any, **named: Any) -> Offsets:
        return self._runner.run(self._client.publish(*arguments, **named))

    def ask(self, verb: str, **arguments: Any) -> Any:
        return self._runner.run(self._client.ask(verb, **arguments))

    def fetch(self, *arguments: Any, **named: Any) -> Range:
        return self._runner.run(self._client.fetch(*arguments, **named))

    def stage(self, *arguments: Any, **named: Any) -> int:
        return self._runner.run(self._client.stage(*arguments, **named))

    def subscribe(self, *arguments: Any, **named: Any) -> AsyncSubscription:
        it = self._runner.run(self._client.subscribe(*arguments, **named))
        return AsyncSubscription(it, self._runner)

    def close(self) -> None:
        self._runner.run(self._client.close())
        self._runner.close()

    @property
    def version(self) -> str:
        return self._client.server_version


class AsyncSubscription:
    def __init__(self, subscription: Any, runner: asyncio.Runner) -> None:
        self.it = subscription
        self._runner = runner

    def take(self, count: int) -> list[Delivery]:
        async def taken() -> list[Delivery]:
            return [await self.it.next() for _ in range(count)]

        return self._runner.run(taken())

    def ack(self, delivery: Delivery) -> None:
        self.it.ack(delivery)

    def nack(self, delivery: Delivery, error: str, **named: Any) -> None:
        self._runner.run(self.it.nack(delivery, error, **named))

    def flush(self) -> None:
        self._runner.run(self.it.flush())

    def close(self) -> None:
        self._runner.run(self.it.close())


Connect = Callable[..., Any]


@contextmanager
def closing_all(flavour: type[Blocking] | type[Async]) -> Iterator[Connect]:
    """Connect as often as you like; all of them are closed at the end."""
    opened: list[Blocking | Async] = []

    def connect_(data: Path, **options: Any) -> Blocking | Async:
        opened.append(flavour(data, **options))
        return opened[-1]

    try:
        yield connect_
    finally:
        for client in opened:
            client.close()
