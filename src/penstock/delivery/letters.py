"""Dead letters: what could not be handled, kept with the reason.

A letter is an event of the topic ``$dead-letters``, so it is as durable as any event
and costs no memory; its number is its offset there. This module knows which of them
are closed (republished or dropped), as a floor, the numbers beyond it, and what became
of the newest in front of it.

Crash promise: precious. Replayed from the journal, carried by every checkpoint.

Numbers of closed letters are kept as runs of neighbours: a client that sends a million
letters again and leaves the first one open costs one run, not a million numbers in
memory and in every checkpoint.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Literal

import msgspec

from penstock.delivery.amend import EventCopy, amended_page, event_at
from penstock.delivery.kept import Kept
from penstock.delivery.owed import Failed, Owed
from penstock.delivery.pending import PendingMessage
from penstock.delivery.subscription import Subscription
from penstock.delivery.unconfirmed import Unconfirmed
from penstock.errors import LogError
from penstock.log import (
    Batch,
    BrokerLog,
    Columns,
    Record,
    TopicOptions,
    frame_of,
)
from penstock.model.failure import Failure

# In front of the floor: what became of letters that no client asks about any more.
MAX_RUNS = 10_000

LetterVerdict = Literal["republished", "dropped"]
Run = tuple[int, int, LetterVerdict]


class Closings:
    """Runs of (first, end, verdict), by number; they do not overlap."""

    __slots__ = ("_firsts", "_runs")

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        self._runs = [(first, end, verdict) for first, end, verdict in runs]
        self._firsts = [run[0] for run in self._runs]

    def runs(self) -> list[Run]:
        return list(self._runs)

    def get(self, number: int) -> LetterVerdict | None:
        at = bisect_right(self._firsts, number) - 1
        if at < 0 or number >= self._runs[at][1]:
            return None
        return self._runs[at][2]

    def count(self, first: int, end: int) -> int:
        """How many of the numbers from ``first`` to in front of ``end`` are closed."""
        at = max(bisect_right(self._firsts, first) - 1, 0)
        closed = 0
        for low, high, _ in self._runs[at:]:
            if low >= end:
                break
            closed += max(min(high, end) - max(low, first), 0)
        return closed

    def add(self, number: int, verdict: LetterVerdict) -> None:
        """Note what became of a number; what is known of it stays."""
        if self.get(number) is not None:
            return
        at = bisect_right(self._firsts, number)
        first, end, low, high = number, number + 1, at, at
        if at > 0 and self._runs[at - 1][1:] == (number, verdict):
            first, low = self._runs[at - 1][0], at - 1
        if at < len(self._runs) and self._runs[at][::2] == (end, verdict):
            end, high = self._runs[at][1], at + 1
        self._put(low, high, [(first, end, verdict)])

    def discard(self, number: int) -> None:
        """Forget what became of a number."""
        verdict = self.get(number)
        if verdict is None:
            return
        at = bisect_right(self._firsts, number) - 1
        first, end, _ = self._runs[at]
        parts = [(first, number, verdict), (number + 1, end, verdict)]
        self._put(at, at + 1, [run for run in parts if run[0] < run[1]])

    def raised(self, floor: int) -> int:
        """The end of the numbers without a gap from the floor on: the new floor.

        Of those in front of it the newest runs are kept.
        """
        at = max(bisect_right(self._firsts, floor) - 1, 0)
        while at < len(self._runs) and self._runs[at][0] <= floor:
            floor = max(floor, self._runs[at][1])
            at += 1
        if at > MAX_RUNS:
            self._put(0, at - MAX_RUNS, [])
        return floor

    def _put(self, low: int, high: int, runs: list[Run]) -> None:
        self._runs[low:high] = runs
        self._firsts[low:high] = [run[0] for run in runs]


TOPIC = "$dead-letters"
# Of a letter with its copy: the largest event there may be has room in it.
MAX_LETTER_BYTES = 240 << 20
# Retention takes whole segments: so many there are of what may be kept, about.
PARTS = 16


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of one: an event (topic and offset) or raw input.

    ``errors`` are the failures as lines; letters of older versions have nothing else.
    ``event`` is a copy of the event as it was delivered; letters of older versions may
    have none.
    """

    gateway: str
    reason: str
    at_ms: int
    topic: str | None = None
    offset: int | None = None
    id: str | None = None
    subscriber: str | None = None
    tries: int = 0
    errors: list[str] = []
    raw: bytes | None = None
    kind: str | None = None
    failures: list[Failure] = []
    event: EventCopy | None = None
    amended: bool = False

    def encode(self) -> bytes:
        return _encode_letter(self)

    def tries_failed(self) -> list[Failure]:
        """Every failed try that is known, also of letters that have only lines."""
        if self.failures:
            return self.failures
        first = max(self.tries - len(self.errors), 0) + 1
        return [
            Failure(self.at_ms, number, "", line)
            for number, line in enumerate(self.errors, first)
        ]


def buried(subscription: Subscription, failed: Failed, now_s: float) -> DeadLetter:
    """The letter of an event whose last try has failed."""
    last = failed.errors[-1]
    event = _delivered(subscription, failed)
    return DeadLetter(
        gateway="delivery",
        reason=last.line,
        at_ms=int(now_s * 1000),
        topic=subscription.topic,
        offset=failed.offset,
        id=None if event is None else event.id,
        subscriber=subscription.subscriber,
        tries=failed.tries,
        errors=[one.line for one in failed.errors],
        kind=last.kind,
        failures=failed.errors,
        event=event,
        amended=failed.amended is not None,
    )


def _delivered(subscription: Subscription, failed: Failed) -> EventCopy | None:
    if failed.amended is not None:
        page, index = amended_page(subscription.topic, failed.amended), 0
    elif (found := subscription.cursor.find(failed.offset)) is not None:
        page, index = found
    else:
        return None
    return EventCopy.of(event_at(page, index))


def stale(message: PendingMessage, now_s: float) -> DeadLetter:
    """The letter of a message that waited too long for its PUBREL."""
    return DeadLetter(
        gateway="json",
        reason=f"the PUBREL of message {message.id} never came",
        at_ms=int(now_s * 1000),
        topic=message.topic,
        raw=message.payload,
    )


def unfit(message: PendingMessage, reason: str, now_s: float) -> DeadLetter:
    """The letter of a message that no longer fits the schema of its topic."""
    return DeadLetter(
        gateway="json",
        reason=reason,
        at_ms=int(now_s * 1000),
        topic=message.topic,
        raw=message.payload,
    )


def bounded(options: TopicOptions, age_s: float | None, max_bytes: int) -> TopicOptions:
    """Options of a topic for what could not be handled, with a bound of its own."""
    part = max(max_bytes // PARTS, 1 << 10)
    return replace(
        options,
        retention_age_s=age_s,
        retention_bytes=max_bytes,
        segment_bytes=min(options.segment_bytes, part),
        segment_age_s=options.segment_age_s if age_s is None else age_s / PARTS,
    )


def keep(log: BrokerLog, letter: DeadLetter, options: TopicOptions) -> int:
    """Store a letter, of so many bytes; raises what the log raises."""
    if not log.has_topic(TOPIC):
        log.create_topic(TOPIC, options)
    data = letter.encode()
    if len(data) > MAX_LETTER_BYTES:
        letter = msgspec.structs.replace(letter, event=None)
        data = letter.encode()
    columns = Columns([data], letter.at_ms)
    if len(data) <= log.options.max_event_bytes:
        log.append(TOPIC, columns)
    else:  # it has a copy of an event that is as large as one may be
        log.append(TOPIC, Batch.of(TOPIC, frame_of(columns, 0, bytes(16))))
    return len(data)


def keep_raw(
    log: BrokerLog, gateway: str, reason: str, raw: bytes, options: TopicOptions
) -> None:
    """Store input that makes no sense; raises what the log raises."""
    at_ms = log.now_ms()
    letter = DeadLetter(gateway=gateway, reason=reason, at_ms=at_ms, raw=raw)
    keep(log, letter, options)


def kept(log: BrokerLog, letter: DeadLetter, options: TopicOptions) -> int:
    """Store a letter; 0 if the log refuses it now: then nothing may be lost."""
    try:
        return keep(log, letter, options)
    except LogError:
        return 0


class UnconfirmedLetters:
    """Events given up whose letters may still fail to be stored."""

    def __init__(self) -> None:
        self._open: list[tuple[int, Subscription, Failed, dict[int, int]]] = []

    def add(self, group: int, subscription: Subscription, failed: Failed) -> None:
        """The letter of an event is in this group."""
        places = subscription.cursor.places  # others, if it is moved meanwhile
        self._open.append((group, subscription, failed, places))

    def confirmed(self, group: int) -> None:
        """The letters up to this group are stored."""
        self._open = [one for one in self._open if one[0] > group]

    def taken_back(self) -> None:
        """The letters failed: the events are owed again, and tried again."""
        for _, subscription, failed, places in self._open:
            if subscription.cursor.places is places:
                subscription.take_back(failed)
        self._open = []


class UnconfirmedRedrives:
    """Events to be sent again, which wait until that, and why, is stored."""

    def __init__(self) -> None:
        self._open: list[tuple[int, Subscription, Owed]] = []

    def add(self, group: int, subscription: Subscription, owed: Owed) -> None:
        """An event is held back for this group."""
        self._open.append((group, subscription, owed))

    def confirmed(self, group: int, wake: Callable[[Subscription], object]) -> None:
        """Send what was held back for the groups up to this one."""
        ready = [one for one in self._open if one[0] <= group]
        if ready:
            self._open = [one for one in self._open if one[0] > group]
        for _, subscription, owed in ready:
            subscription.let_go(owed)
            wake(subscription)

    def taken_back(self) -> None:
        """It failed: nothing is sent again."""
        for _, subscription, owed in self._open:
            subscription.call_off(owed)
        self._open = []


class Closed(msgspec.Struct, array_like=True, frozen=True):
    numbers: list[int]
    verdict: LetterVerdict


class LettersState(msgspec.Struct, array_like=True, frozen=True):
    """``closed`` was written by older versions, which knew no runs."""

    floor: int
    closed: dict[int, LetterVerdict]
    runs: list[Run] = []


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Closed]).decode
_decode_state = msgspec.msgpack.Decoder(LettersState).decode
# JSON, so that the topic can be read as a table like any other.
_encode_letter = msgspec.json.Encoder().encode
decode_letter = msgspec.json.Decoder(DeadLetter).decode


class Letters(Kept):
    """Owner of the record of what was done with letters."""

    kind = 259

    def __init__(self) -> None:
        self.floor = 0
        """Every letter in front of this number is closed."""
        self.changes = 0
        """Another number whenever a letter was closed, or is open again."""
        self._closed = Closings()
        self._changes: Unconfirmed[Closed] = Unconfirmed()

    @property
    def urgent(self) -> bool:
        return bool(self._changes)

    def verdict(self, number: int) -> LetterVerdict | Literal["closed"] | None:
        """What was done with a letter; None if it is open.

        Of old ones it may be known only that they are closed.
        """
        found = self._closed.get(number)
        return "closed" if found is None and number < self.floor else found

    def open_between(self, first: int, end: int) -> int:
        """How many letters from ``first`` to in front of ``end`` are open."""
        first = max(first, self.floor)
        return max(end - first - self._closed.count(first, end), 0)

    def close(self, numbers: list[int], verdict: LetterVerdict) -> None:
        """Have letters closed with the group that is open."""
        closed = Closed(numbers, verdict)
        self._changes.add(closed)
        self._apply(closed)

    def confirmed(self) -> None:
        """What the committed group closed is closed for good."""
        self._changes.confirm()
        if self._changes.confirmed:
            self.floor = self._closed.raised(self.floor)

    def _apply(self, closed: Closed) -> None:
        self.changes += 1
        for number in closed.numbers:
            if number >= self.floor:
                self._closed.add(number, closed.verdict)

    # The journal's side

    def collect(self) -> list[tuple[bytes, bool]]:
        closed = self._changes.close()
        return [(_encode(closed), True)] if closed else []

    def taken_back(self) -> None:
        """Open the letters again that were closed by what failed."""
        self.changes += 1
        for closed in self._changes.take_back():
            for number in closed.numbers:
                if number >= self.floor:
                    self._closed.discard(number)

    def snapshot(self) -> bytes:
        return _encode(LettersState(self.floor, {}, self._closed.runs()))

    def restore(self, snapshot: bytes) -> None:
        state = _decode_state(snapshot)
        self.floor, self._closed = state.floor, Closings(state.runs)
        for number, verdict in state.closed.items():
            self._closed.add(number, verdict)

    def replay(self, record: Record) -> None:
        for closed in _decode(record.data):
            self._apply(closed)
