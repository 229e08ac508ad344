"""One contender in a process of its own: told what to do, it measures itself.

It gets a task as a line of JSON, prepares, says so, and then answers every further
line with a sample. The CPU time of a sample is that of this process and of the servers
it uses, so that a broker inside the process and one outside of it compare.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import json
import logging
import sys
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.peers.adapter import Place
from bench.peers.processes import cpu_s
from bench.rounds import Sample


@dataclass(frozen=True, kw_only=True)
class Task:
    """What one player does, again and again."""

    # module:Class
    player: str
    place: Place
    # A directory of its own, on the disk that is measured.
    directory: str
    events: int
    payload_bytes: int = 100
    publishers: int = 64
    options: dict[str, str | int] = field(default_factory=dict)


class Player(ABC):
    def __init__(self, task: Task) -> None:
        self.task = task
        self.directory = Path(task.directory)
        self.turn = 0
        """How often it has played: names what a turn makes."""

    def prepare(self) -> None:  # noqa: B027
        """What takes long and is not measured, once."""

    @abstractmethod
    def play(self) -> Sample:
        """One turn, measured."""

    def option(self, name: str, default: int) -> int:
        return int(self.task.options.get(name, default))


class Watch:
    """Wall time, and CPU time of this process and of the servers."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._servers = cpu_s(task.place.pids)
        self._cpu = time.process_time()
        self._wall = time.perf_counter()

    def stop(self, **facts: float) -> Sample:
        seconds = time.perf_counter() - self._wall
        own = time.process_time() - self._cpu
        events = self._task.events
        return Sample(
            events=events,
            bytes=events * self._task.payload_bytes,
            seconds=seconds,
            cpu_s=own + cpu_s(self._task.place.pids) - self._servers,
            facts=facts,
        )


class Countdown:
    """Counts calls of a handler; ``done`` after the last."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.done = asyncio.Event()

    def one(self) -> None:
        self.left -= 1
        if not self.left:
            self.done.set()


async def publish_from_many(
    publish: Callable[[bytes], Awaitable[object]],
    payloads: Sequence[bytes],
    publishers: int,
) -> None:
    """Publish everything from so many tasks, each awaiting one event at a time."""
    left = iter(payloads)

    async def publisher() -> None:
        for payload in left:
            await publish(payload)

    async with asyncio.TaskGroup() as group:
        for _ in range(publishers):
            group.create_task(publisher())


def main() -> None:
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")  # what a peer advises against is wanted here
    topic_filter = json.loads(sys.stdin.readline())
    task = Task(**{**topic_filter, "place": Place(**topic_filter["place"])})
    try:
        module, _, name = task.player.partition(":")
        player: Player = getattr(importlib.import_module(module), name)(task)
        player.prepare()
        _say({"ready": True})
        while sys.stdin.readline():
            player.turn += 1
            _say(dataclasses.asdict(player.play()))
    except Exception as error:  # the harness decides what becomes of the others
        _say({"error": f"{type(error).__name__}: {error}"})


def _say(words: dict[str, object]) -> None:
    print(json.dumps(words), flush=True)


if __name__ == "__main__":
    main()
