"""The desk's sinks: epochs of queries are committed, given up, and listed."""

from __future__ import annotations

import re
from heapq import nsmallest
from typing import Annotated

from msgspec import Meta

from penstock.broker.broker import Broker
from penstock.broker.epochs import abort, commit
from penstock.delivery.letters import DeadLetter
from penstock.desk.arguments import Limit, Number
from penstock.desk.verbs import Promise, verb
from penstock.desk.views import MAX_ROWS
from penstock.desk.views.sinks import Aborted, Committed, SinkPage, SinkRow
from penstock.errors import InvalidOption

# Tasks of one epoch.
MAX_PARTS = 100_000

Parts = Annotated[list[tuple[Number, Number]], Meta(max_length=MAX_PARTS)]
# Where a query stands in what it reads: a few numbers, or a token of another system.
# In bytes of UTF-8: feeds of databases count what they have of every collection.
MAX_NOTE_BYTES = 1 << 16
Note = Annotated[str, Meta(max_length=MAX_NOTE_BYTES)]
# Raw input of one epoch that makes no sense: reason and bytes.
MAX_LETTERS = 100_000
SinkLetters = Annotated[list[tuple[str, bytes]], Meta(max_length=MAX_LETTERS)]
# Under which name it is filed. It has plain letters, so that it looks like no other.
MAX_GATEWAY = 64
GatewayName = Annotated[
    str,
    Meta(max_length=MAX_GATEWAY, pattern=r"^(?:[A-Za-z0-9][A-Za-z0-9 ._/-]*)?\Z"),
]
# First words of the names that the broker files under by itself.
OWN_GATEWAYS = frozenset({"delivery", "http", "json", "line", "maze", "mqtt", "native"})
SINK = "sink"
_WORD = re.compile("[a-z0-9]+")


class SinkDesk:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @verb("sinks")
    def sinks(self, *, after: str = "", limit: Limit = MAX_ROWS) -> SinkPage:
        """Queries that write and go on, by name, behind ``after``."""
        sinks = self._broker.sinks
        names = {one.query for one in sinks} | set(sinks.staging.queries())
        found = [name for name in names if name > after]
        rows = [self._row(name) for name in nsmallest(limit, found)]
        return SinkPage(sinks=rows, more=len(found) > limit)

    @verb("sinks.commit", Promise.STORED)
    def commit(
        self,
        *,
        query: str,
        epoch: Number,
        parts: Parts,
        last: bool = False,
        note: Note = "",
        letters: SinkLetters = [],  # noqa: B006 - only read
        gateway: GatewayName = "",
        owner: str = "",
    ) -> Committed:
        """Store the staged parts (partition, attempt) of an epoch: all, and once.

        ``last``: the query ends with it, and need not be listed or kept for long.
        ``note``: where the query stands in what it reads; ``letters``: what it could
        not make sense of, filed under ``gateway``. Both are stored with the events.
        ``owner`` is not the caller's to say: the server fills it in.
        Raises MissingStage if a part is not there, InvalidPayload, LimitReached.
        """
        _check_note(note)
        _check_gateway(gateway)
        at_ms = self._broker.log.now_ms()
        raw = [
            DeadLetter(gateway=gateway or SINK, reason=reason, at_ms=at_ms, raw=data)
            for reason, data in letters
        ]
        broker = self._broker
        done = commit(
            *(broker, query, epoch, parts), last=last, note=note, raw=raw, owner=owner
        )
        if done is None:
            found = broker.sinks.last(query)
            noted = "" if found is None else found.note
            return Committed(committed=True, before=True, events=0, note=noted)
        return Committed(committed=True, before=False, events=done.events, note=note)

    @verb("sinks.last")
    def last(self, *, query: str) -> SinkRow:
        """How far one query is; without an epoch if it has committed none."""
        return self._row(query)

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
            note="" if last is None else last.note,
            staged_epochs=len(staged),
            staged_bytes=sum(one.size for one in staged.values()),
        )


def _check_note(note: str) -> None:
    if len(note) * 4 > MAX_NOTE_BYTES and len(note.encode()) > MAX_NOTE_BYTES:
        limit = f"at most {MAX_NOTE_BYTES} bytes"
        raise InvalidOption("note", f"of {len(note.encode())} bytes", limit)


def _check_gateway(gateway: str) -> None:
    """No reader takes a letter of a sink for one of the broker's own."""
    word = _WORD.match(gateway.lower())
    if word is not None and word[0] in OWN_GATEWAYS:
        raise InvalidOption("gateway", gateway, "a name that the broker has not itself")
