"""The desk's hands: send dead letters again, edited or as they are, or drop them.

A letter goes back to the subscription that failed, and to no other, as the event it
was: same id, same offset. Its letter is closed, and the audit trail written, in the
same group that makes the subscription owe the event: it happens once, whatever happens
in between. So everything is judged first, then noted, then done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Annotated, NamedTuple

from msgspec import Meta

from penstock.broker.broker import Broker
from penstock.delivery.amend import amended_frame
from penstock.delivery.subscription import Subscription
from penstock.desk.arguments import By, Limit, Number
from penstock.desk.audit_trail import AuditDesk, AuditReason, edit_of
from penstock.desk.letter_book import FoundHead, FoundLetters, LetterBook, LetterHead
from penstock.desk.verbs import Promise, verb
from penstock.desk.views import MAX_ROWS
from penstock.desk.views.audit import AuditAction, AuditEntry
from penstock.desk.views.letters import Done, DonePage, Filter
from penstock.errors import InvalidBatch
from penstock.model.event import Event

logger = logging.getLogger(__name__)

# Events that are no longer in their topics, or not as they were, wait in memory.
MAX_AMENDED_BYTES = 64 << 20
# Events that a subscription owes are in memory one by one.
MAX_OWED = 200_000

Numbers = Annotated[list[Number], Meta(max_length=MAX_ROWS)]

_DONE_BEFORE = {
    "republished": "republished before",
    "dropped": "dropped before",
    "closed": "republished or dropped before, see the audit trail",
}


class OffsetAndPriority(NamedTuple):
    """Where an event is in its topic."""

    offset: int
    priority: int


class _Act(NamedTuple):
    """Something to be done with a letter, found to be possible."""

    number: int
    head: LetterHead
    do: Callable[[], None]


Judged = Done | _Act


class RedriveDesk:
    def __init__(self, broker: Broker, audit: AuditDesk) -> None:
        self._broker = broker
        self._audit = audit
        self._book = LetterBook(broker)

    @verb("dead-letters.republish", Promise.STORED)
    def republish(
        self,
        *,
        numbers: Numbers | None = None,
        filter: Filter | None = None,
        start: Number = 0,
        end: Number | None = None,
        limit: Limit = MAX_ROWS,
        dry_run: bool = False,
        by: By = "",
    ) -> DonePage:
        """Send events again, to the subscription that failed only.

        Either ``numbers``, or the open letters of events that ``filter`` takes, from
        ``start`` on and in front of ``end``. ``dry_run``: only tell what would be.
        """
        page = self._chosen(numbers, filter, start, end, limit)
        found = [
            (number, head)
            for number, head in page.found
            if numbers is not None or head.offset is not None
        ]
        room = _Room()
        judged = [self._judge_send(number, head, room) for number, head in found]
        results = self._carry_out(judged, "republished", by, dry_run=dry_run)
        return DonePage(results=results, next=page.next)

    @verb("dead-letters.edit", Promise.STORED)
    def edit(
        self,
        *,
        number: Number,
        payload: bytes,
        reason: Annotated[str, Meta(max_length=2000)] = "",
        dry_run: bool = False,
        by: By = "",
    ) -> Done:
        """Send an event again with another payload, to the failed subscription only.

        The event in its topic stays as it is. Raises UnknownDeadLetter, InvalidPayload
        if the topic has a schema that it does not fit, InvalidBatch.
        """
        head = self._book.head(number)
        judged = self._judge_edit(number, head, payload)
        if isinstance(judged, Done) or dry_run:
            return _outcomes([judged], "would be edited and republished")[0]
        old = self._book.event(number, head)
        assert old is not None, "or it would not have been judged possible"
        entry = edit_of(
            number,
            subscriber=head.subscriber,
            topic=head.topic,
            at_ms=self._broker.log.now_ms(),
            by=by,
            reason=reason,
            old=old.event.payload,
            new=payload,
        )
        self._audit.note([entry])
        self._do([judged], "edited", by, reason)
        return _outcomes([judged], "edited and republished")[0]

    @verb("dead-letters.drop", Promise.STORED)
    def drop(
        self,
        *,
        reason: AuditReason,
        numbers: Numbers | None = None,
        filter: Filter | None = None,
        start: Number = 0,
        end: Number | None = None,
        limit: Limit = MAX_ROWS,
        dry_run: bool = False,
        by: By = "",
    ) -> DonePage:
        """Close letters without sending them again; ``reason`` goes into the audit."""
        page = self._chosen(numbers, filter, start, end, limit)
        judged = [self._judge_drop(number, head) for number, head in page.found]
        results = self._carry_out(judged, "dropped", by, reason, dry_run=dry_run)
        return DonePage(results=results, next=page.next)

    def _chosen(
        self,
        numbers: Numbers | None,
        filter: Filter | None,
        start: int,
        end: int | None,
        limit: int,
    ) -> FoundLetters:
        if numbers is None:
            return self._book.scan(filter or Filter(), start, end, limit)
        found: list[FoundHead] = [
            (number, self._book.head(number)) for number in dict.fromkeys(numbers)
        ]
        return FoundLetters(found, None)

    # Judging: nothing is changed yet

    def _judge_drop(self, number: int, head: LetterHead) -> Judged:
        status = self._book.status(number)
        if status != "open":
            return Done(number=number, done=True, text=_DONE_BEFORE[status])
        return _Act(number, head, _nothing)

    def _judge_send(self, number: int, head: LetterHead, room: _Room) -> Judged:
        status = self._book.status(number)
        if status != "open":
            done = status == "republished"
            return Done(number=number, done=done, text=_DONE_BEFORE[status])
        where = self._where(number, head)
        if isinstance(where, str):
            return Done(number=number, done=False, text=where)
        one, place, copied = where
        if len(one.owed) >= MAX_OWED:
            text = f"{one.subscriber} has {len(one.owed)} events to handle first"
            return Done(number=number, done=False, text=text)
        frame = None
        if copied is not None:
            frame = _frame(copied, copied.payload)
            if not room.has(one, len(frame)):
                return Done(number=number, done=False, text=_full(one))
        return _Act(number, head, lambda: self._send(one, place, frame))

    def _judge_edit(self, number: int, head: LetterHead, payload: bytes) -> Judged:
        status = self._book.status(number)
        if status != "open":
            return Done(number=number, done=False, text=_DONE_BEFORE[status])
        where = self._where(number, head)
        if isinstance(where, str):
            return Done(number=number, done=False, text=where)
        one, place, _ = where
        located = self._book.event(number, head)
        assert located is not None, "it has a place"
        problem = self._cannot_edit(one, located.event, place, payload)
        if problem is not None:
            return Done(number=number, done=False, text=problem)
        frame = _frame(located.event, payload)
        return _Act(number, head, lambda: self._send(one, place, frame))

    def _cannot_edit(
        self, one: Subscription, event: Event, place: OffsetAndPriority, payload: bytes
    ) -> str | None:
        where = f"event {event.offset} of {event.topic}"
        if event.offset in one.owed:
            return f"{where} is on its way already; it goes as it is"
        if _in_front(one, place):
            return f"{one.subscriber} has not come to {where} yet; it goes as it is"
        limit = self._broker.log.options.max_event_bytes
        if len(payload) > limit:
            raise InvalidBatch("payload size", len(payload), f"at most {limit}")
        gate = self._broker.registry.gates.get(event.topic)
        if gate is not None:
            gate.check([payload])
        return None if _Room().has(one, len(payload)) else _full(one)

    def _where(
        self, number: int, head: LetterHead
    ) -> tuple[Subscription, OffsetAndPriority, Event | None] | str:
        """The subscription, the event's place, and a copy if its topic has it not.

        Or why it cannot be sent.
        """
        if head.topic is None or head.offset is None or head.subscriber is None:
            return "is raw input, which has no subscription to go to"
        one = self._broker.subscriptions.get(head.subscriber, head.topic)
        if one is None:
            return f"{head.subscriber} has no subscription to {head.topic} any more"
        priority = self._book.stored_priority(head)
        if priority is not None:
            return one, OffsetAndPriority(head.offset, priority), None
        copied = self._book.copied(number)
        if copied is None:
            return f"event {head.offset} of {head.topic} is gone"
        if head.offset >= self._broker.log.topic(head.topic).end_offset:
            return f"topic {head.topic} is another one than it was"
        return one, OffsetAndPriority(head.offset, copied.priority), copied

    # Doing

    def _carry_out(
        self,
        judged: list[Judged],
        action: AuditAction,
        by: str,
        reason: str = "",
        *,
        dry_run: bool,
    ) -> list[Done]:
        acts = [one for one in judged if isinstance(one, _Act)]
        if acts and not dry_run:
            at_ms = self._broker.log.now_ms()
            self._audit.note(_entries(acts, action, by, reason, at_ms))
            self._do(acts, action, by, reason)
        return _outcomes(judged, f"would be {action}" if dry_run else action)

    def _do(self, acts: list[_Act], action: AuditAction, by: str, reason: str) -> None:
        for act in acts:
            act.do()
        numbers = [act.number for act in acts]
        said = f"{by or 'somebody'}{': ' if reason else ''}{reason}"
        if action == "dropped":
            self._broker.letters.close(numbers, "dropped")
            logger.info(
                "%s dead letters dropped by %s",
                len(acts),
                said,
                extra={"action": "dead_letters_dropped", "numbers": numbers},
            )
        else:
            self._broker.letters.close(numbers, "republished")
            logger.info(
                "%s dead letters %s by %s",
                len(acts),
                action,
                said,
                extra={"action": "dead_letters_republished", "numbers": numbers},
            )

    def _send(
        self, one: Subscription, place: OffsetAndPriority, frame: bytes | None
    ) -> None:
        """Have a subscription owe the event, unless it comes to it anyway.

        It is sent when that is stored: a commit that fails is to have done nothing.
        """
        if frame is None and _in_front(one, place):
            return
        held = one.hold_back(place.offset, place.priority, frame)
        if held is not None:
            self._broker.unconfirmed_redrives.add(self._broker.group, one, held)


def _in_front(one: Subscription, place: OffsetAndPriority) -> bool:
    """Whether a subscription that was moved back will come to an event anyway."""
    cursor = one.cursor
    level = cursor.level_of(place.priority)
    return place.offset >= cursor.places.get(level, cursor.start)


class _Room:
    """How much more may wait in memory, by subscription."""

    def __init__(self) -> None:
        self._used: dict[int, int] = {}

    def has(self, one: Subscription, size: int) -> bool:
        """Take so many bytes, if there is room for them."""
        if one.number not in self._used:
            self._used[one.number] = sum(map(len, one.amended.values()))
        used = self._used[one.number]
        if used and used + size > MAX_AMENDED_BYTES:
            return False
        self._used[one.number] = used + size
        return True


def _frame(event: Event, payload: bytes) -> bytes:
    return amended_frame(event, event.topic, event.offset, payload)


def _full(one: Subscription) -> str:
    limit = f"{MAX_AMENDED_BYTES >> 20} MiB"
    return f"{one.subscriber} has {limit} of edited events to handle first"


def _nothing() -> None:
    """Dropping is closing, and that is done for all at once."""


def _entries(
    acts: list[_Act], action: AuditAction, by: str, reason: str, at_ms: int
) -> Iterable[AuditEntry]:
    """An entry for each subscription that is concerned."""
    found: dict[tuple[str | None, str | None], list[int]] = {}
    for act in acts:
        whose = (act.head.subscriber, act.head.topic)
        found.setdefault(whose, []).append(act.number)
    for (subscriber, topic), numbers in found.items():
        yield AuditEntry(
            at_ms=at_ms,
            by=by,
            action=action,
            numbers=numbers,
            subscriber=subscriber,
            topic=topic,
            reason=reason,
        )


def _outcomes(judged: list[Judged], text: str) -> list[Done]:
    return [
        one
        if isinstance(one, Done)
        else Done(number=one.number, done=True, text=text, fresh=True)
        for one in judged
    ]
