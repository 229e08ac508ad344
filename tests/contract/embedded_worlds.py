"""Brokers that run handlers behind one face, so that one suite tests them all.

``async`` and ``blocking`` are in the process, each with a data directory of its own;
``url`` is a real server. All tests share that one, so names are made for each test.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

import penstock
from penstock.client.address import SOCKET_NAME
from tests.http_client import token_of
from tests.serving import Serving

# Reached only if something is wrong, however busy the machine is.
SETTLE_S = 60.0
_numbers = count()


class AsyncFace:
    """An AsyncBroker on a loop of its own, in a thread."""

    def __init__(self, target: str, **options: Any) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._open = True
        try:
            self.broker = self._wait(penstock.open(target, **options).__aenter__())
        except BaseException:
            self._end()
            raise

    def publish(self, *arguments: Any, **named: Any) -> penstock.Stored:
        return self._wait(self.broker.publish(*arguments, **named))

    def publish_many(self, *arguments: Any) -> list[penstock.Stored]:
        return self._wait(self.broker.publish_many(*arguments))

    def start(self, *domains: penstock.Domain) -> None:
        self._wait(self.broker.start(*domains))

    def settle(self, timeout_s: float = SETTLE_S) -> None:
        self._wait(self.broker.wait_until_settled(timeout_s))

    def ask(self, verb: str, **arguments: object) -> Any:
        return msgspec.to_builtins(self._wait(self.broker.ask(verb, **arguments)))

    def stop(self) -> None:
        """Close the broker, and keep the loop."""
        self._wait(self.broker.close())

    def close(self, grace_s: float = 5.0) -> None:
        if self._open:
            try:
                self._wait(self.broker.close(grace_s))
            finally:
                self._end()

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(90)

    def _end(self) -> None:
        self._open = False
        self._wait(_cancel_the_rest())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class BlockingFace:
    def __init__(self, target: str, **options: Any) -> None:
        self.broker = penstock.open(target, **options).__enter__()
        self._open = True

    def publish(self, *arguments: Any, **named: Any) -> penstock.Stored:
        return self.broker.publish(*arguments, **named)

    def publish_many(self, *arguments: Any) -> list[penstock.Stored]:
        return self.broker.publish_many(*arguments)

    def start(self, *domains: penstock.Domain) -> None:
        self.broker.start(*domains)

    def settle(self, timeout_s: float = SETTLE_S) -> None:
        self.broker.wait_until_settled(timeout_s)

    def ask(self, verb: str, **arguments: object) -> Any:
        return msgspec.to_builtins(self.broker.ask(verb, **arguments))

    def stop(self) -> None:
        self.broker.close()

    def close(self, grace_s: float = 5.0) -> None:
        if self._open:
            self._open = False
            self.broker.close(grace_s)


Face = AsyncFace | BlockingFace


class World:
    """Opens brokers of one kind; whatever is open at the end is closed."""

    def __init__(self, kind: str, directory: Path, server: Serving | None) -> None:
        self.kind = kind
        self.directory = directory / "data"
        self._server = server
        self._number = next(_numbers)
        self._faces: list[Face] = []

    @property
    def target(self) -> str:
        if self._server is not None:
            return f"penstock://127.0.0.1:{self._server.ports['native']}"
        return str(self.directory)

    @property
    def token(self) -> str | None:
        """What a server's port needs of whoever administers."""
        return None if self._server is None else token_of(self._server)

    def name(self, word: str) -> str:
        """A name that no other test has."""
        return f"{word}-{self._number}"

    def domain(self, word: str) -> penstock.Domain:
        return penstock.Domain(self.name(word))

    def open(self, **options: Any) -> Face:
        flavour = BlockingFace if self.kind == "blocking" else AsyncFace
        self._faces.append(flavour(self.target, **options))
        return self._faces[-1]

    def close(self) -> None:
        for face in self._faces:
            face.close(0.0)

    def letters(self, face: Face, subscriber: str) -> list[dict[str, Any]]:
        """The dead letters of a subscriber, whole."""
        wanted = {"subscriber": self.name(subscriber)}
        rows = face.ask("dead-letters", filter=wanted)["letters"]
        return [face.ask("dead-letters.show", number=row["number"]) for row in rows]

    def errors(self, face: Face, subscriber: str) -> list[dict[str, Any]]:
        """The error log of a subscriber, oldest first."""
        wanted = {"subscriber": self.name(subscriber)}
        page = face.ask("errors", filter=wanted, oldest_first=True)
        return list(page["errors"])


def socket_of(world: World) -> Path:
    return world.directory / SOCKET_NAME


async def _cancel_the_rest() -> None:
    """What handlers left behind that do not listen to anybody."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)
