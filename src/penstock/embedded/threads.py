"""Who carries handlers out: threads, for functions that are not async.

A thread takes one call after the other; where calls are short a few more wait for it,
so that it need not wait for the loop. It cannot be stopped: when the time of a call
is over the thread is retired, which means that it ends with the call, and another one
takes its place. Threads are daemons, so that one that never ends does not keep the
process.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Iterable
from queue import Empty, SimpleQueue

from penstock.embedded.run import HandlerRun
from penstock.embedded.worker_pool import Ahead, NextRun, RunEnded, following, tell


class ThreadPool:
    """Synchronous handlers, each call in a thread."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        limit: int,
        ahead: Ahead,
        next_run: NextRun,
        ended: RunEnded,
        name: str,
    ) -> None:
        self._loop = loop
        self._limit = limit
        self._ahead = ahead
        """How many calls may wait for a thread."""
        self._next_run = next_run
        self._ended = ended
        self._name = name
        self._inbox: SimpleQueue[HandlerRun | None] = SimpleQueue()
        self._done: deque[tuple[HandlerRun, bool]] = deque()
        self._announced = False
        self._runs: dict[HandlerRun, None] = {}
        self._threads = 0
        """Threads that take calls."""
        self._stopping = False
        self.stuck = 0

    @property
    def busy(self) -> bool:
        return bool(self._runs)

    @property
    def starting(self) -> int:
        begun = len(list(self.running()))
        return max(min(len(self._runs), self._threads) - begun, 0)

    def wake(self) -> None:
        most = self._limit + self._ahead()
        while len(self._runs) < most and not self._stopping:
            run = following(self._next_run)
            if run is None:
                break
            self._runs[run] = None
            self._inbox.put(run)
        # Also for those that waited for a thread that was given up.
        while self._threads < min(len(self._runs), self._limit) and not self._stopping:
            self._start()

    def running(self) -> Iterable[HandlerRun]:
        return [run for run in list(self._runs) if run.begun]

    def give_up(self, run: HandlerRun) -> None:
        del self._runs[run]
        self.stuck += 1
        self._threads -= 1  # its thread ends with it

    def withdraw(self) -> list[HandlerRun]:
        found: list[HandlerRun] = []
        try:
            while (run := self._inbox.get_nowait()) is not None:
                del self._runs[run]
                found.append(run)
        except Empty:
            pass
        return found

    async def stop(self) -> None:
        self._stopping = True
        for _ in range(self._threads):
            self._inbox.put(None)

    def _start(self) -> None:
        self._threads += 1
        threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def _work(self) -> None:
        """In a thread: call after call, until told to end or retired."""
        while (run := self._inbox.get()) is not None:
            run.call_blocking()
            retired = run.given_up
            self._done.append((run, retired))
            if not self._announced:
                self._announced = True
                try:
                    self._loop.call_soon_threadsafe(self._collect)
                except RuntimeError:
                    return  # the loop has closed meanwhile
            if retired:
                return

    def _collect(self) -> None:
        self._announced = False
        while self._done:
            run, retired = self._done.popleft()
            if run.given_up:
                self.stuck -= 1
                if not retired:  # it was done before it could notice
                    self._threads += 1
                continue
            del self._runs[run]
            tell(self._ended, run)
        self.wake()
