"""Finding dead letters, what became of them, and the events they tell of.

Most questions need the head of a letter only; its tries, with their tracebacks, and
the copy of its event are decoded when a client looks at that one.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal, NamedTuple

import msgspec

from penstock.broker.broker import Broker
from penstock.delivery.amend import event_at
from penstock.delivery.letters import TOPIC, DeadLetter, decode_letter
from penstock.delivery.pages import Page
from penstock.desk.scan import Budget, backwards, forwards, since
from penstock.desk.views.letters import Filter, LetterRow, Status
from penstock.errors import UnknownDeadLetter
from penstock.model.event import Event
from penstock.model.failure import GONE

# Of raw input and reasons, in a list.
PREVIEW_BYTES = 200
REASON_CHARACTERS = 1000

# Letters that one look reads: some milliseconds.
LOOK_LETTERS = 2_000
# Open letters whose topics are remembered, the newest.
MAX_KNOWN = 100_000


class LetterHead(msgspec.Struct, frozen=True, kw_only=True):
    """What lists and filters need of a letter."""

    gateway: str
    reason: str
    at_ms: int
    topic: str | None = None
    offset: int | None = None
    id: str | None = None
    subscriber: str | None = None
    tries: int = 0
    kind: str | None = None
    amended: bool = False
    raw: bytes | None = None


FoundHead = tuple[int, LetterHead]

decode_head = msgspec.json.Decoder(LetterHead).decode


class FoundLetters(NamedTuple):
    """Letters that were found, and where to go on if there may be more."""

    found: list[FoundHead]
    next: int | None


class Located(NamedTuple):
    """The event of a letter, and where it is from."""

    event: Event
    source: Literal["log", "letter"]


class LetterBook:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def end(self) -> int:
        """Behind the last letter there is now."""
        log = self._broker.log
        return log.topic(TOPIC).end_offset if log.has_topic(TOPIC) else 0

    def status(self, number: int) -> Status:
        """What became of a letter; of old ones only the audit trail may know."""
        return self._broker.letters.verdict(number) or "open"

    def head(self, number: int) -> LetterHead:
        """The head of one letter; raises UnknownDeadLetter."""
        return decode_head(self._data(number))

    def letter(self, number: int) -> DeadLetter:
        """All of one letter; raises UnknownDeadLetter."""
        return decode_letter(self._data(number))

    def scan(
        self,
        filter: Filter,
        start: int,
        end: int | None,
        limit: int,
        status: Status | Literal["done"] | None = "open",
        *,
        newest: bool = False,
    ) -> FoundLetters:
        """Letters that the filter takes; None: whatever became of them.

        ``done``: all that are not open. ``newest``: the newest first, and what is to go
        on with is in front of ``next``.
        """
        log = self._broker.log
        start = max(start, since(log, TOPIC, filter.since_ms))
        if status == "open":
            start = max(start, self._broker.letters.floor)
        budget = Budget()
        found: list[FoundHead] = []
        look = (
            backwards(log, TOPIC, end, start)
            if newest
            else forwards(log, TOPIC, start, end)
        )
        for number, data in look:
            if len(found) >= limit or budget.spent:
                return FoundLetters(found, number + newest)
            if status is not None and not self._is(number, status):
                budget.spend(0)
                continue
            budget.spend(len(data))
            head = decode_head(data)
            if filter.takes(head):
                found.append((number, head))
        return FoundLetters(found, None)

    def _is(self, number: int, status: Status | Literal["done"]) -> bool:
        known = self.status(number)
        return known != "open" if status == "done" else known == status

    def row(self, number: int, head: LetterHead) -> LetterRow:
        raw = head.raw
        return LetterRow(
            number=number,
            status=self.status(number),
            at_ms=head.at_ms,
            gateway=head.gateway,
            reason=head.reason[:REASON_CHARACTERS],
            kind=head.kind,
            topic=head.topic,
            offset=head.offset,
            id=head.id,
            subscriber=head.subscriber,
            tries=head.tries,
            amended=head.amended,
            raw=None if raw is None else raw[:PREVIEW_BYTES],
            raw_bytes=0 if raw is None else len(raw),
        )

    def event(self, number: int, head: LetterHead) -> Located | None:
        """The event as it was delivered: from its topic, or from the letter's copy.

        The topic may have lost it to retention; then the letter has it. An event that
        was edited is in the letter only. None: there is none, or none any more.
        """
        if head.offset is None:
            return None
        stored = self._stored(head)
        if stored is not None:
            return Located(event_at(*stored), "log")
        copied = self.copied(number)
        return None if copied is None else Located(copied, "letter")

    def stored_priority(self, head: LetterHead) -> int | None:
        """The priority of a letter's event; None if its topic has not that event."""
        stored = self._stored(head)
        return None if stored is None else stored[0].priorities[stored[1]]

    def _stored(self, head: LetterHead) -> tuple[Page, int] | None:
        """Where the event is, if it is still there as it was delivered."""
        topic, offset = head.topic, head.offset
        if topic is None or offset is None or head.amended or head.kind == GONE:
            return None
        log = self._broker.log
        if not log.has_topic(topic) or offset < log.topic(topic).start_offset:
            return None
        page = self._broker.pages.at(topic, offset)
        if page is None:
            return None
        index = page.batch.index_of(offset)
        if page.batch.offset_of(index) != offset:
            return None  # compacted away
        if head.id not in (None, page.ids[index]):
            return None  # of a new topic of that name
        return page, index

    def copied(self, number: int) -> Event | None:
        """The event that a letter has a copy of."""
        letter = self.letter(number)
        copy = letter.event
        if copy is None or letter.topic is None or letter.offset is None:
            return None
        return copy.event(letter.topic, letter.offset)

    def _data(self, number: int) -> bytes:
        broker = self._broker
        page = broker.pages.at(TOPIC, number) if broker.log.has_topic(TOPIC) else None
        index = 0 if page is None else page.batch.index_of(number)
        if page is None or page.batch.offset_of(index) != number:
            raise UnknownDeadLetter(number, "does not exist")
        return page.payloads[index]


class LetterCount:
    """How many dead letters are open, by topic: counted on with every look.

    The number of all of them is known at any time. Those of each topic are found by
    reading the letters once, a bounded part at every look, and remembering where the
    open ones are from.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topics: dict[int, str] = {}
        """Of open letters, by their number."""
        self._next = 0
        self._changes = -1
        self._counts: dict[str, int] = {}

    def open(self) -> int:
        """How many there are in all."""
        log = self._broker.log
        if not log.has_topic(TOPIC):
            return 0
        topic = log.topic(TOPIC)
        return self._broker.letters.open_between(topic.start_offset, topic.end_offset)

    def by_topic(self) -> dict[str, int]:
        """How many each topic has, as far as they were read."""
        log = self._broker.log
        if not log.has_topic(TOPIC):
            return {}
        grown = self._read_on(log.topic(TOPIC).end_offset)
        shrunk = self._drop_closed(log.topic(TOPIC).start_offset)
        if grown or shrunk:
            self._counts = dict(Counter(self._topics.values()))
        return self._counts

    def _read_on(self, end: int) -> bool:
        start = max(self._next, self._broker.letters.floor)
        if start >= end:
            return False
        stop = min(start + LOOK_LETTERS, end)
        for number, data in forwards(self._broker.log, TOPIC, start, stop):
            name = decode_head(data).topic
            if name is not None and self._broker.letters.verdict(number) is None:
                self._topics[number] = name
        self._next = stop
        while len(self._topics) > MAX_KNOWN:
            del self._topics[next(iter(self._topics))]
        return True

    def _drop_closed(self, start: int) -> bool:
        letters = self._broker.letters
        changes = letters.changes + start
        if changes == self._changes:
            return False
        self._changes = changes
        gone = [n for n in self._topics if n < start or letters.verdict(n) is not None]
        for number in gone:
            del self._topics[number]
        return bool(gone)
