"""The desk for dead letters: look at them one by one, in lists and in groups.

What is done with them is in redrive.py.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from penstock.broker.broker import Broker
from penstock.delivery.letters import DeadLetter
from penstock.desk.arguments import Limit, Number
from penstock.desk.audit_trail import AuditDesk
from penstock.desk.letter_book import LetterBook, LetterHead
from penstock.desk.verbs import verb
from penstock.desk.views.events import EventView, TryRow
from penstock.desk.views.letters import (
    Filter,
    GroupPage,
    GroupRow,
    LetterPage,
    LetterView,
    Status,
    pattern_of,
)
from penstock.model.event import Event, values_of

# Letters that are grouped for one answer: perhaps each is a group of its own.
MAX_GROUPED = 1000


class LetterDesk:
    def __init__(self, broker: Broker, audit: AuditDesk) -> None:
        self._broker = broker
        self._audit = audit
        self._book = LetterBook(broker)

    @verb("dead-letters")
    def search(
        self,
        *,
        filter: Filter = Filter(),  # noqa: B008 - it is frozen
        start: Number = 0,
        end: Number | None = None,
        closed: bool = False,
        status: Status | Literal["done"] | None = None,
        newest: bool = False,
        limit: Limit = 100,
    ) -> LetterPage:
        """Letters from number ``start`` on, in front of ``end``, the oldest first.

        Open ones, or those of a ``status`` (``done``: all that are not open), or with
        ``closed`` all of them. ``newest``: the newest first; then ``next`` is the
        ``end`` to ask with again.
        """
        wanted = status or (None if closed else "open")
        page = self._book.scan(filter, start, end, limit, wanted, newest=newest)
        rows = [self._book.row(number, head) for number, head in page.found]
        return LetterPage(letters=rows, next=page.next)

    @verb("dead-letters.groups")
    def groups(
        self,
        *,
        filter: Filter = Filter(),  # noqa: B008 - it is frozen
        start: Number = 0,
        end: Number | None = None,
    ) -> GroupPage:
        """Open letters from ``start`` on, those that are alike counted together.

        Groups of several pages are to be merged. ``end`` is behind the last letter
        there was: a client that goes on says it, and does not run after new ones.
        """
        end = self._book.end if end is None else end
        page = self._book.scan(filter, start, end, MAX_GROUPED)
        found: dict[_LetterKey, _Group] = {}
        for number, head in page.found:
            _group_of(found, head).add(number, head.at_ms)
        rows = [group.row(key) for key, group in found.items()]
        return GroupPage(groups=rows, next=page.next, end=end)

    @verb("dead-letters.show")
    def show(self, *, number: Number) -> LetterView:
        """Everything about one letter, and its event; raises UnknownDeadLetter."""
        head, letter = self._book.head(number), self._book.letter(number)
        located = self._book.event(number, head)
        row = self._book.row(number, head)
        entry, searched = None, True
        if row.status != "open":
            entry, searched = self._audit.closing(number, letter.at_ms)
        fields = msgspec.structs.asdict(row)
        fields.update(raw=letter.raw, reason=letter.reason)
        return LetterView(
            **fields,
            pattern=pattern_of(letter.reason),
            errors=[one.line for one in letter.tries_failed()],
            failures=_tries(letter),
            event=None if located is None else event_view(located.event),
            event_from=None if located is None else located.source,
            history=[] if entry is None else [entry],
            history_cut=not searched,
        )


class _LetterKey(NamedTuple):
    subscriber: str | None
    topic: str | None
    gateway: str
    kind: str | None
    pattern: str


class _Group:
    __slots__ = ("count", "example", "first", "first_ms", "last_ms")

    def __init__(self) -> None:
        self.count = 0
        self.first = self.example = 0
        self.first_ms = self.last_ms = 0

    def add(self, number: int, at_ms: int) -> None:
        if not self.count:
            self.first, self.first_ms, self.last_ms = number, at_ms, at_ms
        self.count += 1
        self.example = number
        self.first_ms = min(self.first_ms, at_ms)
        self.last_ms = max(self.last_ms, at_ms)

    def row(self, key: _LetterKey) -> GroupRow:
        return GroupRow(
            **key._asdict(),
            count=self.count,
            first_ms=self.first_ms,
            last_ms=self.last_ms,
            first=self.first,
            example=self.example,
        )


def _group_of(found: dict[_LetterKey, _Group], head: LetterHead) -> _Group:
    key = _LetterKey(
        head.subscriber,
        head.topic,
        head.gateway,
        head.kind,
        pattern_of(head.reason),
    )
    group = found.get(key)
    if group is None:
        group = found[key] = _Group()
    return group


def _tries(letter: DeadLetter) -> list[TryRow]:
    return [
        TryRow(
            tries=one.tries,
            at_ms=one.at_ms,
            duration_s=one.duration_s,
            kind=one.kind,
            message=one.message,
            traceback=one.traceback,
        )
        for one in letter.tries_failed()
    ]


def event_view(event: Event) -> EventView:
    values = values_of(event)
    del values["topic"]
    return EventView(**values)
