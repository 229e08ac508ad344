"""DuckDB in a thread of its own, so that Ctrl-C is heard while it works.

It looks for signals only now and then, and not at all while it sorts or counts: here
the main thread waits, and tells it to stop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from penstock.sql.engine import SqlEngine, SqlResult

T = TypeVar("T")

# An interrupt is lost on a query that is about to begin: it is told again.
AGAIN_S = 0.1


class InterruptibleEngine:
    """An engine whose work a KeyboardInterrupt ends; raised when it has ended."""

    def __init__(self, engine: SqlEngine) -> None:
        self._engine = engine
        self._thread = ThreadPoolExecutor(1, "penstock-sql")

    def names(self) -> Sequence[str]:
        return self._engine.names()

    def statements(self, query: str) -> list[str]:
        return self._engine.statements(query)

    def answer(self, query: str) -> SqlResult:
        """Raises InvalidQuery."""
        found = self._done(lambda: self._engine.answer(query))
        return replace(found, batches=self._each(found.batches))

    def write_parquet(self, query: str, file: str, most: int | None) -> None:
        """Raises InvalidQuery."""
        self._done(lambda: self._engine.write_parquet(query, file, most))

    def _each(self, batches: Iterator[Any]) -> Iterator[Any]:
        while (batch := self._done(lambda: next(batches, None))) is not None:
            yield batch

    def _done(self, work: Callable[[], T]) -> T:
        doing = self._thread.submit(work)
        try:
            return doing.result()
        finally:
            self._end(doing)

    def _end(self, doing: Future[Any]) -> None:
        while not doing.done():
            self._engine.interrupt()
            with suppress(KeyboardInterrupt):
                wait([doing], AGAIN_S)
