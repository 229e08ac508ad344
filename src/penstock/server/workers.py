"""Threads that do what would hold up the event loop: syncs and segment writes.

The event loop hands over one piece of work at a time and is told when it is done. No
queue grows: whoever hands over waits for the answer before it hands over again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]


class Worker:
    """One thread. ``submit`` from the loop; ``done`` is called in the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self._loop = loop
        self._queue: SimpleQueue[tuple[Work, Work] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Work, done: Work) -> None:
        self._queue.put((work, done))

    def stop(self) -> None:
        """Let the thread end when it has nothing to do."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            work, done = item
            try:
                work()
            finally:
                self._loop.call_soon_threadsafe(done)
