"""The desk's sinks: epochs of queries are committed, given up, and listed."""

from __future__ import annotations

from heapq import nsmallest
from typing import Annotated

from msgspec import Meta

from penstock.broker.broker import Broker
from penstock.broker.desk_verbs import Promise, verb
from penstock.broker.desk_views import View
from penstock.broker.epochs import abort, commit

MAX_ROWS = 1000
# Tasks of one epoch.
MAX_PARTS = 100_000

Limit = Annotated[int, Meta(ge=1, le=MAX_ROWS)]
Number = Annotated[int, Meta(ge=0)]
Parts = Annotated[list[tuple[Number, Number]], Meta(max_length=MAX_PARTS)]


class Committed(View, frozen=True, kw_only=True):
    """An epoch that is stored. ``before``: it was already, and nothing was done."""

    committed: bool
    before: bool
    events: int


class Aborted(View, frozen=True, kw_only=True):
    dropped_bytes: int


class SinkRow(View, frozen=True, kw_only=True):
    query: str
    epoch: int | None
    """Committed last; None if none was."""
    at_ms: int | None
    events: int | None
    staged_epochs: int
    staged_bytes: int


class SinkPage(View, frozen=True, kw_only=True):
    sinks: list[SinkRow]
    more: bool


class SinkDesk:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @verb("sinks")
    def sinks(self, *, after: str = "", limit: Limit = MAX_ROWS) -> SinkPage:
        """Queries that write, by name, behind ``after``."""
        sinks = self._broker.sinks
        names = {one.query for one in sinks} | set(sinks.staging.queries())
        found = [name for name in names if name > after]
        rows = [self._row(name) for name in nsmallest(limit, found)]
        return SinkPage(sinks=rows, more=len(found) > limit)

    @verb("sinks.commit", Promise.STORED)
    def commit(self, *, query: str, epoch: Number, parts: Parts) -> Committed:
        """Store the staged parts (partition, attempt) of an epoch: all, and once.

        Raises MissingStage if a part is not there, InvalidPayload, LimitReached.
        """
        done = commit(self._broker, query, epoch, parts)
        if done is None:
            return Committed(committed=True, before=True, events=0)
        return Committed(committed=True, before=False, events=done.events)

    @verb("sinks.abort")
    def abort(self, *, query: str, epoch: Number) -> Aborted:
        """Drop what is staged of an epoch; what is committed stays."""
        return Aborted(dropped_bytes=abort(self._broker, query, epoch))

    def _row(self, query: str) -> SinkRow:
        last = self._broker.sinks.last(query)
        staged = self._broker.sinks.staging.of_query(query)
        return SinkRow(
            query=query,
            epoch=None if last is None else last.number,
            at_ms=None if last is None else last.at_ms,
            events=None if last is None else last.events,
            staged_epochs=len(staged),
            staged_bytes=sum(one.size for one in staged.values()),
        )
