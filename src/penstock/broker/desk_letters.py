"""The desk for dead letters: look at them, send them again, drop them.

A letter goes back to the subscription that failed, and to no other, as the event it
was: same id, same offset. Its letter is closed in the same group that makes the
subscription owe the event, so it happens once, whatever happens in between.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.broker.broker import Broker
from penstock.broker.desk_verbs import Promise, verb
from penstock.broker.desk_views import (
    Done,
    DonePage,
    EventView,
    LetterPage,
    LetterRow,
    LetterView,
    Status,
)
from penstock.delivery.letters import TOPIC, DeadLetter, decode_letter
from penstock.errors import UnknownDeadLetter
from penstock.log import Batch
from penstock.model.event import Event

logger = logging.getLogger(__name__)

MAX_ROWS = 1000
# Letters looked at for one answer: a filter that matches little must not keep
# everybody waiting.
MAX_SCAN = 10_000
# Of raw input, in a list.
PREVIEW_BYTES = 200

Limit = Annotated[int, Meta(ge=1, le=MAX_ROWS)]
Number = Annotated[int, Meta(ge=0)]
Numbers = Annotated[list[Number], Meta(max_length=MAX_ROWS)]
Found = tuple[int, DeadLetter]

_DONE_BEFORE = {
    "republished": "republished before",
    "dropped": "dropped before",
    "closed": "closed before",
}


class Filter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which letters; what is left out does not matter.

    ``reason`` is a part of it. ``gateway`` is all of it or its first word: ``json``
    takes ``json consumer``.
    """

    subscriber: str | None = None
    topic: str | None = None
    gateway: str | None = None
    reason: str | None = None

    def takes(self, letter: DeadLetter) -> bool:
        return (
            self.subscriber in (None, letter.subscriber)
            and self.topic in (None, letter.topic)
            and self.gateway in (None, letter.gateway, _first_word(letter.gateway))
            and (self.reason is None or self.reason.lower() in letter.reason.lower())
        )


def _first_word(text: str) -> str:
    return text.partition(" ")[0]


class LetterDesk:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @verb("dead-letters")
    def search(
        self,
        *,
        filter: Filter = Filter(),  # noqa: B008 - it is frozen
        start: Number = 0,
        closed: bool = False,
        limit: Limit = 100,
    ) -> LetterPage:
        """Letters from number ``start`` on, the oldest first; closed ones if asked."""
        found, behind = self._scan(filter, start, limit, closed=closed)
        rows = [self._row(number, letter) for number, letter in found]
        return LetterPage(letters=rows, next=behind)

    @verb("dead-letters.show")
    def show(self, *, number: Number) -> LetterView:
        """Everything about one letter, and its event; raises UnknownDeadLetter."""
        letter = self._letter(number)
        event = self._event(letter)
        row = msgspec.structs.asdict(self._row(number, letter))
        row["raw"] = letter.raw
        shown = None if event is None else _event_view(event)
        return LetterView(**row, errors=letter.errors, event=shown)

    @verb("dead-letters.republish", Promise.STORED)
    def republish(
        self,
        *,
        numbers: Numbers | None = None,
        filter: Filter | None = None,
        start: Number = 0,
        limit: Limit = MAX_ROWS,
    ) -> DonePage:
        """Send events again, to the subscription that failed only.

        Either ``numbers``, or all open letters of events that ``filter`` takes.
        """
        found, behind = self._chosen(numbers, filter, start, limit)
        if numbers is None:
            found = [(n, letter) for n, letter in found if letter.offset is not None]
        return DonePage(results=[self._resend(*one) for one in found], next=behind)

    @verb("dead-letters.drop", Promise.STORED)
    def drop(
        self,
        *,
        numbers: Numbers | None = None,
        filter: Filter | None = None,
        start: Number = 0,
        limit: Limit = MAX_ROWS,
        reason: str = "",
    ) -> DonePage:
        """Close letters; ``reason`` is logged."""
        found, behind = self._chosen(numbers, filter, start, limit)
        chosen = dict.fromkeys(number for number, _ in found)
        states = {number: self._status(number) for number in chosen}
        fresh = [number for number, status in states.items() if status == "open"]
        if fresh:
            self._broker.letters.close(fresh, "dropped")
            logger.info(
                "%s dead letters dropped: %s",
                len(fresh),
                reason or "no reason given",
                extra={"action": "dead_letters_dropped", "numbers": fresh},
            )
        results = [
            Done(number=number, done=True, text=_DONE_BEFORE.get(status, "dropped"))
            for number, status in states.items()
        ]
        return DonePage(results=results, next=behind)

    # One letter

    def _resend(self, number: int, letter: DeadLetter) -> Done:
        status = self._status(number)
        if status != "open":
            done = status != "dropped"
            return Done(number=number, done=done, text=_DONE_BEFORE[status])
        problem = self._owe_again(number, letter)
        if problem is not None:
            return Done(number=number, done=False, text=problem)
        self._broker.letters.close([number], "republished")
        return Done(number=number, done=True, text="republished")

    def _owe_again(self, number: int, letter: DeadLetter) -> str | None:
        """Have the subscription owe the event; or why that cannot be."""
        if letter.topic is None or letter.offset is None or letter.subscriber is None:
            return "is raw input, which has no subscription to go to"
        one = self._broker.subscriptions.get(letter.subscriber, letter.topic)
        if one is None:
            return f"{letter.subscriber} has no subscription to {letter.topic} any more"
        event = self._event(letter)
        if event is None:
            return f"event {letter.offset} of {letter.topic} is gone"
        cursor = one.cursor
        level = cursor.level_of(event.priority)
        # What a subscription that was moved back has still in front of it comes anyway.
        if event.offset < cursor.places.get(level, cursor.start):
            one.add_back(event.offset, event.priority)
            self._broker.wake(one)
        return None

    def _event(self, letter: DeadLetter) -> Event | None:
        """The event of a letter, if it is still that event."""
        topic, offset = letter.topic, letter.offset
        if topic is None or offset is None or topic not in self._broker.log.catalog:
            return None
        page = self._broker.pages.at(topic, offset)
        if page is None:
            return None
        index = page.batch.index_of(offset)
        one = Batch(topic, page.batch.body, page.batch.header, index, index + 1)
        event = next(one.events())
        if event.offset != offset or letter.id not in (None, event.id):
            return None  # trimmed or compacted away, or a new topic of that name
        return event

    def _letter(self, number: int) -> DeadLetter:
        broker = self._broker
        page = broker.pages.at(TOPIC, number) if TOPIC in broker.log.catalog else None
        index = 0 if page is None else page.batch.index_of(number)
        if page is None or page.batch.offset_of(index) != number:
            raise UnknownDeadLetter(number, "does not exist")
        return decode_letter(page.payloads[index])

    def _row(self, number: int, letter: DeadLetter) -> LetterRow:
        raw = letter.raw
        return LetterRow(
            number=number,
            status=self._status(number),
            at_ms=letter.at_ms,
            gateway=letter.gateway,
            reason=letter.reason,
            topic=letter.topic,
            offset=letter.offset,
            id=letter.id,
            subscriber=letter.subscriber,
            tries=letter.tries,
            raw=None if raw is None else raw[:PREVIEW_BYTES],
            raw_bytes=0 if raw is None else len(raw),
        )

    def _status(self, number: int) -> Status:
        letters = self._broker.letters
        if number < letters.floor:
            return "closed"  # how is not remembered for ever
        return letters.verdict(number) or "open"

    # Many letters

    def _chosen(
        self,
        numbers: Numbers | None,
        filter: Filter | None,
        start: int,
        limit: int,
    ) -> tuple[list[Found], int | None]:
        if numbers is None:
            return self._scan(filter or Filter(), start, limit, closed=False)
        return [(number, self._letter(number)) for number in numbers], None

    def _scan(
        self, filter: Filter, start: int, limit: int, *, closed: bool
    ) -> tuple[list[Found], int | None]:
        """Letters that the filter takes, and where to go on if there may be more."""
        found: list[Found] = []
        if not closed:
            start = max(start, self._broker.letters.floor)
        for looked, (number, letter) in enumerate(self._read(start)):
            if len(found) >= limit or looked >= MAX_SCAN:
                return found, number
            if filter.takes(letter) and (closed or self._status(number) == "open"):
                found.append((number, letter))
        return found, None

    def _read(self, start: int) -> Iterator[Found]:
        log = self._broker.log
        if TOPIC not in log.catalog:
            return
        topic = log.topic(TOPIC)
        offset = max(start, topic.start_offset)
        if offset >= topic.end_offset:
            return
        while batches := log.read(TOPIC, offset):
            for batch in batches:
                letters = map(decode_letter, batch.payloads())
                yield from zip(batch.offsets(), letters, strict=True)
            offset = batches[-1].end_offset


def _event_view(event: Event) -> EventView:
    return EventView(
        offset=event.offset,
        id=event.id,
        timestamp=event.timestamp_ms,
        priority=event.priority,
        key=event.key,
        headers=dict(event.headers),
        parent=event.parent,
        producer=event.producer,
        payload=event.payload,
    )
