"""Handlers that leak, block, raise what nobody should, and return nonsense.

``DATA``: publishes to all of them, says ``settled`` when nothing is left to do, then
``alive`` when a well-behaved handler has handled something more, and ends.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import Any, Never

import penstock
from penstock import Context, Domain, Event

EVENTS = 20
# Handlers that are always wrong have two tries; the others are right.
WRONG = Domain("wrong")
RIGHT = Domain("right")
Raw = Event[bytes]
leaked: list[object] = []
alive: list[int] = []


class Fatal(BaseException):
    pass


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


RAISED: list[type[BaseException]] = [
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    asyncio.CancelledError,
    StopIteration,
    StopAsyncIteration,
    MemoryError,
    RecursionError,
    Fatal,
    Mute,
]


def raised(event: Raw) -> BaseException:
    return RAISED[event.offset % len(RAISED)]()


@WRONG.on("raises-async", tries=2, backoff_s=0.01)
async def raises_async(event: Raw) -> Never:
    raise raised(event)


@WRONG.on("raises", tries=2, backoff_s=0.01)
def raises(event: Raw) -> Never:
    raise raised(event)


@WRONG.on("raises-a-group", tries=2, backoff_s=0.01)
def raises_a_group(event: Raw) -> Never:
    raise BaseExceptionGroup("many", [ValueError("one"), raised(event)])


@WRONG.on("blocks", tries=2, backoff_s=0.01, timeout_s=0.1, concurrency=20)
def blocks(event: Raw) -> None:
    time.sleep(0.5)


@WRONG.on("blocks-the-loop", tries=2, backoff_s=0.01, timeout_s=0.02)
async def blocks_the_loop(event: Raw) -> None:
    time.sleep(0.05)  # noqa: ASYNC251 - which is the point


@WRONG.on("never-ends", tries=2, backoff_s=0.01, timeout_s=0.1, concurrency=20)
async def never_ends(event: Raw) -> None:
    while True:
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            if leaked.count(event.offset) > 2:
                raise
            leaked.append(event.offset)


@WRONG.on("publishes-nonsense", tries=2, backoff_s=0.01)
async def publishes_nonsense(event: Raw, context: Context) -> None:
    nonsense: list[Any] = [("$dead-letters", b""), ("", b""), ("t", object()), (1, b"")]
    context.publish(*nonsense[event.offset % len(nonsense)])


@WRONG.on("returns-a-coroutine", tries=2, backoff_s=0.01)
def returns_a_coroutine(event: Raw) -> object:
    return asyncio.sleep(0)


@RIGHT.on("leaks")
async def leaks(event: Raw) -> None:
    leaked.append(bytearray(1_000_000))
    leaked.append(asyncio.create_task(asyncio.sleep(3600)))
    leaked.append(asyncio.get_running_loop().create_future())


@RIGHT.on("returns-nonsense")
def returns_nonsense(event: Raw) -> object:
    nonsense: list[object] = [0, "no", object(), Fatal, Fatal(), iter(()), ..., leaked]
    return nonsense[event.offset % len(nonsense)]


@RIGHT.on("returns-nonsense-async")
async def returns_nonsense_async(event: Raw) -> object:
    return returns_nonsense(event)


@RIGHT.on("well-behaved")
async def well_behaved(event: Raw) -> None:
    alive.append(event.offset)


async def main(data: str) -> None:
    async with penstock.open(data) as broker:
        for handler in [*WRONG, *RIGHT]:
            await broker.publish_many(handler.topic, [b"x"] * EVENTS)
        await broker.start(WRONG, RIGHT)
        await broker.wait_until_settled(60)
        print("settled", flush=True)
        stored = await broker.publish("well-behaved", b"x")
        await broker.wait_until_settled(60)
        assert alive[-1] == stored.offset
        print("alive", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
