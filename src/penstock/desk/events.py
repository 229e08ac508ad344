"""The desk for single events: one with its deliveries, and all that have an id."""

from __future__ import annotations

from heapq import nsmallest
from typing import Annotated

from msgspec import Meta

from penstock.broker.broker import Broker
from penstock.chains import ChainQuestion, Walk
from penstock.delivery.letters import TOPIC as LETTERS
from penstock.delivery.letters import DeadLetter, decode_letter
from penstock.delivery.states import IN_FLIGHT
from penstock.delivery.subscription import Subscription
from penstock.desk.arguments import Offset
from penstock.desk.scan import Budget, forwards, since
from penstock.desk.verbs import verb
from penstock.desk.views.events import (
    DeliveryRow,
    DeliveryState,
    EventDetail,
    EventMatches,
    TopicEventView,
    TryRow,
)
from penstock.errors import InvalidArgument, UnknownEvent
from penstock.log import Batch
from penstock.model.event import Event, values_of
from penstock.model.failure import Failure

FIND = "events.find"
# Subscriptions of one answer.
MAX_DELIVERIES = 1000
# Events of one id.
MAX_FOUND = 1000

FoundLimit = Annotated[int, Meta(ge=1, le=MAX_FOUND)]

# Subscriber -> number and letter of what could not be handled.
SubscriberLetters = dict[str, tuple[int, DeadLetter]]


class EventDesk:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @verb("events.show")
    def show(self, *, topic: str, offset: Offset) -> EventDetail:
        """One event, and what became of it in every subscription of its topic.

        Raises UnknownTopic, UnknownEvent.
        """
        batch = self._at(topic, offset)
        event = next(batch.events())
        letters, cut = self._letters(topic, offset, event.timestamp_ms)
        subscriptions = list(self._broker.subscriptions.of_topic(topic))
        shown = nsmallest(MAX_DELIVERIES, subscriptions, key=lambda one: one.number)
        return EventDetail(
            event=_view(event),
            deliveries=[self._delivery(one, event, letters) for one in shown],
            more_deliveries=len(subscriptions) > MAX_DELIVERIES,
            letters_cut=cut,
        )

    @verb(FIND)
    def find(
        self, *, id: str | None = None, limit: FoundLimit = 100, next: int | None = None
    ) -> EventMatches:
        """The events that have an id, in all topics, found by the index of chains.

        Answers come in parts: ask again with ``next``, alone, while there is one.
        Raises UnknownEvent if there is none, InvalidArgument, WriteFailed.
        """
        chains = self._broker.chains
        if (id is None) == (next is None):
            raise InvalidArgument(FIND, "say either id, or next")
        if next is None:
            question = ChainQuestion(id=id, depth=0, limit=limit, direction="up")
            return self._found(*chains.ask(question))
        walk = chains.go_on(next)
        if walk is None:
            raise InvalidArgument(FIND, f"question {next} is over: ask it anew")
        return self._found(next, walk)

    def _found(self, number: int, walk: Walk) -> EventMatches:
        hits = [found.hit for found in walk.take() if found.asked]
        return EventMatches(
            events=[_view(event) for hit in hits for event in hit.event.events()],
            next=None if walk.done else number,
            behind=self._broker.chains.behind,
            cut=walk.cut == "limit",
        )

    def _at(self, topic: str, offset: int) -> Batch:
        """A view of one event; raises UnknownTopic, UnknownEvent."""
        owner = self._broker.log.topic(topic)
        page = None
        if owner.start_offset <= offset < owner.end_offset:
            page = self._broker.pages.at(topic, offset)
        index = 0 if page is None else page.batch.index_of(offset)
        if page is None or page.batch.offset_of(index) != offset:
            raise UnknownEvent(f"{topic}:{offset}")
        whole = page.batch
        return Batch(topic, whole.body, whole.header, index, index + 1)

    def _letters(
        self, topic: str, offset: int, at_ms: int
    ) -> tuple[SubscriberLetters, bool]:
        """The last dead letter of each subscriber; whether some were not looked at.

        A letter is younger than its event, so older ones are not looked at.
        """
        log = self._broker.log
        # As they are stored: what has not these bytes need not be decoded.
        mark = b'"offset":%d' % offset
        marks = (mark + b",", mark + b"}")
        budget, found = Budget(), SubscriberLetters()
        for number, data in forwards(log, LETTERS, since(log, LETTERS, at_ms)):
            if budget.spent:
                return found, True
            budget.spend(len(data))
            if marks[0] in data or marks[1] in data:
                letter = decode_letter(data)
                if (letter.topic, letter.offset) == (topic, offset):
                    found[letter.subscriber or ""] = number, letter
        return found, False

    def _delivery(
        self, one: Subscription, event: Event, letters: SubscriberLetters
    ) -> DeliveryRow:
        offset = event.offset
        number, letter = letters.get(one.subscriber, (None, None))
        tries, due_ms, errors = 0, None, one.errors.get(offset, [])
        if offset in one.owed:
            owed = one.owed[offset]
            waits = owed.state not in IN_FLIGHT
            state: DeliveryState = "waiting" if waits else "in flight"
            tries = owed.tries
            due_ms = int(owed.due_s * 1000) if owed.due_s else None
        elif letter is not None and self._is_dead(number):
            state, tries, errors = "dead letter", letter.tries, letter.tries_failed()
        elif offset < one.cursor.start:
            state = "before"
        elif _unsent(one, event):
            state = "not yet"
        elif event.not_before_ms is not None and self._postponed(one, event):
            state, due_ms = "not yet", event.not_before_ms
        else:
            state, tries = "settled", 1
        return DeliveryRow(
            subscriber=one.subscriber,
            temporary=one.temporary,
            state=state,
            tries=tries,
            due_ms=due_ms,
            errors=[_try(failure) for failure in errors],
            letter=number,
        )

    def _postponed(self, one: Subscription, event: Event) -> bool:
        """Whether an event was passed over until its time, and not sent since."""
        level = one.cursor.level_of(event.priority)
        place = event.not_before_ms or 0, event.offset
        late = place > self._broker.delays.mark(event.topic)
        return late or (level, event.offset) in one.fresh.due

    def _is_dead(self, number: int | None) -> bool:
        """Whether a letter was not sent again: it is open, or was dropped."""
        assert number is not None, "a letter has one"
        return self._broker.letters.verdict(number) in (None, "dropped")


def _unsent(one: Subscription, event: Event) -> bool:
    cursor = one.cursor
    level = cursor.plain_level if cursor.plain else cursor.level_of(event.priority)
    return event.offset >= cursor.places.get(level, cursor.start)


def _try(failure: Failure) -> TryRow:
    return TryRow(
        tries=failure.tries,
        at_ms=failure.at_ms,
        duration_s=failure.duration_s,
        kind=failure.kind,
        message=failure.message,
        traceback=failure.traceback,
    )


def _view(event: Event) -> TopicEventView:
    return TopicEventView(**values_of(event))
