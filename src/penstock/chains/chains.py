"""Chains of a log: an index that follows it, and the questions that are under way.

The index is filled in steps by the upkeep, and caught up when a question is asked.
Nothing it does reaches the log: what fails costs the index, which stays behind or is
made anew, and is said in the log records.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import count

from penstock.chains.filling import Filler
from penstock.chains.finding import Finder, Meter
from penstock.chains.store import (
    MEMORY,
    ChainIndex,
    Unusable,
    open_store,
    put_aside,
)
from penstock.chains.walk import ChainQuestion, Walk
from penstock.errors import WriteFailed
from penstock.files import Files, write_error
from penstock.log import BrokerLog, Layout, StoredTopic

logger = logging.getLogger(__name__)

# About microseconds, see Filler: what an event loop can spare at a time.
STEP_EFFORT = 10_000
# Steps left out after a failure, so that a full disk is not asked all the time.
PAUSE_STEPS = 50
# Questions that may be under way; the one that was begun first is forgotten.
MAX_WALKS = 32


class Chains:
    def __init__(self, log: BrokerLog) -> None:
        self._log = log
        self._layout = Layout(log.directory)
        self._store: ChainIndex | None = None
        self._filler: Filler | None = None
        self._pause = 0
        self._error: WriteFailed | None = None
        self._walks: dict[int, Walk] = {}
        self._numbers = count(1)

    def note(self, topic: StoredTopic) -> None:
        """A topic has grown; called for every commit."""
        if self._filler is not None:
            self._filler.note(topic)

    def note_each(self, topics: Iterable[StoredTopic]) -> None:
        """Several have grown."""
        if self._filler is not None:
            for topic in topics:
                self._filler.note(topic)

    @property
    def behind(self) -> int:
        """How many offsets are not indexed yet; 0 before the index was opened."""
        return 0 if self._filler is None else self._filler.behind

    def step(self) -> bool:
        """Index a little; True if there is more to do. Raises nothing of its own."""
        if self._pause:
            self._pause -= 1
            return False
        try:
            spent = self._fill(STEP_EFFORT)
        except Unusable as error:
            self._make_anew(str(error))
            return True
        return bool(spent) and bool(self._filler and self._filler.waiting)

    def topic_of(self, text: str) -> str | None:
        """The topic of an event with this id, as far as the index knows one."""
        try:
            self._fill(0)
            if self._store is None or self._filler is None:
                return None
            finder = Finder(self._log, self._store, self._filler, Meter())
            hits = (hit for hit in finder.with_id(text) if hit is not None)
            return next((hit.topic.name for hit in hits), None)
        except Unusable as error:
            self._make_anew(str(error))
        except WriteFailed:
            pass  # the filling of the index says so
        return None

    def close(self) -> None:
        """Let go of the index; the log is closed by others."""
        if self._store is not None:
            self._store.close()
        self._drop()

    def abandon(self) -> None:
        """Let go of it as a crash would."""
        if self._store is not None:
            self._store.abandon()
        self._drop()

    # Questions

    def ask(self, question: ChainQuestion) -> tuple[int, Walk]:
        """Begin to answer; the number of the question, to go on with.

        Raises UnknownEvent, UnknownTopic, OffsetOutOfRange, WriteFailed.
        """
        try:
            return self._ask(question)
        except Unusable as error:
            self._make_anew(str(error))
        try:
            return self._ask(question)
        except Unusable as error:
            raise WriteFailed("chains.sqlite", "reading", str(error)) from error

    def go_on(self, number: int) -> Walk | None:
        """Go on with a question; None if it is not known any more."""
        walk = self._walks.get(number)
        if walk is None:
            return None
        try:
            self._advance(number, walk)
        except Unusable as error:
            self._make_anew(str(error))
            return None
        return walk

    def _ask(self, question: ChainQuestion) -> tuple[int, Walk]:
        number, walk = next(self._numbers), self._begin(question)
        self._walks[number] = walk
        if len(self._walks) > MAX_WALKS:
            del self._walks[next(iter(self._walks))]
        self._advance(number, walk)
        return number, walk

    def _begin(self, question: ChainQuestion) -> Walk:
        self._pause = 0
        self._fill(0)
        if self._store is None or self._filler is None:
            assert self._error is not None, "else it would be open"
            raise self._error
        meter = Meter()
        finder = Finder(self._log, self._store, self._filler, meter)
        return Walk(question, self._log, self._filler, finder, meter)

    def _advance(self, number: int, walk: Walk) -> None:
        try:
            walk.step(STEP_EFFORT, self._fill)
        except BaseException:
            self._walks.pop(number, None)
            raise
        if walk.done:
            self._walks.pop(number, None)

    # The index

    def _fill(self, effort: int) -> int:
        """Index with so much effort, open it first; 0: all is done, or it cannot be."""
        try:
            filler = self._opened()
            spent = filler.step(effort) if effort > 0 else 0
        except (OSError, WriteFailed) as error:
            self._failed(error)
            return 0
        if self._error is not None and spent:
            self._error = None
            logger.info("chains are indexed again", extra={"action": "chains_resumed"})
        return spent

    def _opened(self) -> Filler:
        if self._filler is None:
            if self._store is None:
                self._store = self._open()
            self._filler = Filler(self._log, self._store)
        return self._filler

    def _open(self) -> ChainIndex:
        if not isinstance(self._log.files, Files):
            return ChainIndex(MEMORY)
        return open_store(self._layout, self._log.files)

    def _failed(self, error: OSError | WriteFailed) -> None:
        first = self._error is None
        if isinstance(error, OSError):
            error = write_error("chains.sqlite", "indexing in", error)
        self._error = error
        self._pause = PAUSE_STEPS
        try:
            if self._filler is not None:
                self._filler.reload()
        except (Unusable, WriteFailed):
            self.abandon()
        if first:
            logger.warning(
                "chains are not indexed for now, events are stored all the same: %s",
                error,
                extra={"action": "chains_behind"},
            )

    def _make_anew(self, reason: str) -> None:
        self.abandon()
        if not isinstance(self._log.files, Files):
            return
        try:
            put_aside(self._layout, self._log.files, reason)
        except WriteFailed as error:
            self._failed(error)

    def _drop(self) -> None:
        self._store = self._filler = None
        self._walks.clear()
