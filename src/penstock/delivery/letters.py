"""Dead letters: what could not be handled, kept with the reason.

A letter is an event of the topic ``$dead-letters``, so it is as durable as any event
and costs no memory; its number is its offset there. This module knows which of them
are closed (republished or dropped), as a floor and the numbers beyond it.

Crash promise: precious. Replayed from the journal, carried by every checkpoint.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.delivery.owed import Failed
from penstock.delivery.pending import Message
from penstock.delivery.subscription import Subscription
from penstock.delivery.unconfirmed import Unconfirmed
from penstock.errors import LogError
from penstock.log import Columns, Log, Record, TopicOptions

TOPIC = "$dead-letters"
Verdict = Literal["republished", "dropped"]


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of one: an event (topic and offset) or raw input."""

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

    def encode(self) -> bytes:
        return _encode_letter(self)


def buried(subscription: Subscription, failed: Failed, now_s: float) -> DeadLetter:
    """The letter of an event whose last try has failed."""
    found = subscription.cursor.find(failed.offset)
    return DeadLetter(
        gateway="delivery",
        reason=failed.errors[-1],
        at_ms=int(now_s * 1000),
        topic=subscription.topic,
        offset=failed.offset,
        id=None if found is None else found[0].ids[found[1]],
        subscriber=subscription.subscriber,
        tries=failed.tries,
        errors=failed.errors,
    )


def stale(message: Message, now_s: float) -> DeadLetter:
    """The letter of a message that waited too long for its PUBREL."""
    return DeadLetter(
        gateway="json",
        reason=f"the PUBREL of message {message.id} never came",
        at_ms=int(now_s * 1000),
        topic=message.topic,
        raw=message.payload,
    )


def keep(log: Log, letter: DeadLetter, options: TopicOptions) -> None:
    """Store a letter; raises what the log raises."""
    if TOPIC not in log.catalog:
        log.create_topic(TOPIC, options)
    log.append(TOPIC, Columns([letter.encode()], letter.at_ms))


def kept(log: Log, letter: DeadLetter, options: TopicOptions) -> bool:
    """Store a letter; False if the log refuses it now: then nothing may be lost."""
    try:
        keep(log, letter, options)
    except LogError:
        return False
    return True


class Graves:
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
                subscription.add_back(failed.offset, failed.level)
        self._open = []


class Closed(msgspec.Struct, array_like=True, frozen=True):
    numbers: list[int]
    verdict: Verdict


class State(msgspec.Struct, array_like=True, frozen=True):
    floor: int
    closed: dict[int, Verdict]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Closed]).decode
_decode_state = msgspec.msgpack.Decoder(State).decode
# JSON, so that the topic can be read as a table like any other.
_encode_letter = msgspec.json.Encoder().encode
decode_letter = msgspec.json.Decoder(DeadLetter).decode


class Letters:
    """Owner of the record of what was done with letters; see log.Owner."""

    def __init__(self) -> None:
        self.floor = 0
        """Every letter in front of this number is closed."""
        self._closed: dict[int, Verdict] = {}
        self._changes: Unconfirmed[Closed] = Unconfirmed()

    @property
    def urgent(self) -> bool:
        return bool(self._changes)

    @property
    def closed(self) -> int:
        """How many letters behind the floor are closed."""
        return len(self._closed)

    def verdict(self, number: int) -> Verdict | None:
        """What was done with a letter; None if it is open."""
        if number < self.floor:
            return self._closed.get(number, "dropped")
        return self._closed.get(number)

    def close(self, numbers: list[int], verdict: Verdict) -> None:
        """Have letters closed with the group that is open."""
        closed = Closed(numbers, verdict)
        self._changes.add(closed)
        self._apply(closed)

    def confirmed(self) -> None:
        """What the committed group closed is closed for good."""
        self._changes.confirm()
        if self._changes.confirmed:
            self._raise_floor()

    def _apply(self, closed: Closed) -> None:
        for number in closed.numbers:
            if number >= self.floor:
                self._closed[number] = closed.verdict

    def _raise_floor(self) -> None:
        """Forget the numbers of letters that are closed without a gap."""
        while self.floor in self._closed:
            del self._closed[self.floor]
            self.floor += 1

    # The journal's side

    def collect(self) -> list[tuple[bytes, bool]]:
        closed = self._changes.close()
        return [(_encode(closed), True)] if closed else []

    def taken_back(self) -> None:
        """Open the letters again that were closed by what failed."""
        for closed in self._changes.take_back():
            for number in closed.numbers:
                self._closed.pop(number, None)

    def snapshot(self) -> bytes:
        return _encode(State(self.floor, self._closed))

    def restore(self, snapshot: bytes) -> None:
        state = _decode_state(snapshot)
        self.floor, self._closed = state.floor, dict(state.closed)

    def replay(self, record: Record) -> None:
        for closed in _decode(record.data):
            self._apply(closed)
