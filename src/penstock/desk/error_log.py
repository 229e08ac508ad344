"""The desk for the error log: every try that failed, whatever became of the event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from penstock.broker.broker import Broker
from penstock.delivery.error_log import TOPIC, decode_failed_try
from penstock.desk.arguments import Limit, Number
from penstock.desk.scan import Budget, backwards, forwards, since
from penstock.desk.verbs import verb
from penstock.desk.views.errors import (
    ErrorFilter,
    ErrorGroup,
    ErrorGroupPage,
    ErrorHead,
    ErrorPage,
    ErrorRow,
    ErrorView,
)
from penstock.errors import UnknownFailure

# Of a message, in a list.
MESSAGE_CHARACTERS = 1000
# Failures that are grouped for one answer: perhaps each is a group of its own.
MAX_GROUPED = 2000


_decode = msgspec.json.Decoder(ErrorHead).decode


class ErrorDesk:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @verb("errors")
    def search(
        self,
        *,
        filter: ErrorFilter = ErrorFilter(),  # noqa: B008 - it is frozen
        start: Number | None = None,
        oldest_first: bool = False,
        limit: Limit = 100,
    ) -> ErrorPage:
        """Failed tries, the newest first or the oldest; ``start`` is included."""
        budget = Budget()
        found: list[ErrorRow] = []
        for number, data in self._read(filter, start, oldest_first=oldest_first):
            if len(found) >= limit or budget.spent:
                return ErrorPage(errors=found, next=number)
            budget.spend(len(data))
            entry = _decode(data)
            if filter.takes(entry):
                found.append(_row(number, entry))
        return ErrorPage(errors=found, next=None)

    @verb("errors.show")
    def show(self, *, number: Number) -> ErrorView:
        """One failed try with its traceback; raises UnknownFailure."""
        log = self._broker.log
        for _, data in forwards(log, TOPIC, number, number + 1):
            fields = msgspec.structs.asdict(decode_failed_try(data))
            return ErrorView(number=number, **fields)
        raise UnknownFailure(number)

    @verb("errors.groups")
    def groups(
        self,
        *,
        filter: ErrorFilter = ErrorFilter(),  # noqa: B008 - it is frozen
        start: Number = 0,
        end: Number | None = None,
    ) -> ErrorGroupPage:
        """Failed tries counted by subscriber, topic and kind of error.

        Groups of several pages are to be merged; ``end`` is to be said again.
        """
        log = self._broker.log
        if end is None:
            end = log.topic(TOPIC).end_offset if log.has_topic(TOPIC) else 0
        budget = Budget(MAX_GROUPED)
        found: dict[_ErrorKey, ErrorGroup] = {}
        first = max(start, since(log, TOPIC, filter.since_ms))
        next_ = None
        for number, data in forwards(log, TOPIC, first, end):
            if budget.spent:
                next_ = number
                break
            budget.spend(len(data))
            entry = _decode(data)
            if filter.takes(entry):
                _count(found, number, entry)
        return ErrorGroupPage(groups=list(found.values()), next=next_, end=end)

    def _read(
        self, filter: ErrorFilter, start: int | None, *, oldest_first: bool
    ) -> Iterator[tuple[int, bytes]]:
        log = self._broker.log
        least = since(log, TOPIC, filter.since_ms)
        if oldest_first:
            return forwards(log, TOPIC, max(start or 0, least))
        return backwards(log, TOPIC, None if start is None else start + 1, least)


class _ErrorKey(NamedTuple):
    subscriber: str
    topic: str
    kind: str


def _count(found: dict[_ErrorKey, ErrorGroup], number: int, entry: ErrorHead) -> None:
    key = _ErrorKey(entry.subscriber, entry.topic, entry.kind)
    known = found.get(key)
    found[key] = ErrorGroup(
        **key._asdict(),
        count=1 if known is None else known.count + 1,
        first_ms=entry.at_ms if known is None else known.first_ms,
        last_ms=entry.at_ms,
        example=number,
    )


def _row(number: int, entry: ErrorHead) -> ErrorRow:
    fields = msgspec.structs.asdict(entry)
    fields["message"] = entry.message[:MESSAGE_CHARACTERS]
    return ErrorRow(number=number, **fields)
