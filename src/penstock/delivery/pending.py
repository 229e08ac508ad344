"""Messages whose publisher has sent PUB and not yet PUBREL (inbound QoS 2).

A message is pending from its PUB until its PUBREL publishes it; both steps are durable
before they are answered. Its id is never given out twice.

Crash promise: precious. Replayed from the journal, carried by every checkpoint. A
release whose group failed is undone, so that the PUBREL can be repeated.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from penstock.delivery.kept import Kept
from penstock.delivery.unconfirmed import Unconfirmed
from penstock.errors import LimitReached
from penstock.log import Record


class PendingMessage(msgspec.Struct, array_like=True, frozen=True):
    """A message on its way in."""

    id: int
    topic: str
    payload: bytes
    at_ms: int
    times: dict[str, int] = {}
    """Times of the event, by the names of their columns."""


class PendingChanges(msgspec.Struct, array_like=True, frozen=True):
    added: list[PendingMessage]
    removed: list[int]
    given_up: list[int] = []


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(PendingChanges).decode
_decode_snapshot = msgspec.msgpack.Decoder(
    tuple[int, list[PendingMessage], list[int]]
).decode

# Ids of messages given up that are remembered, so that a late PUBREL is told.
MAX_GIVEN_UP = 10_000


class Step(Enum):
    """What happened to a message."""

    ADDED = 1
    REMOVED = 2
    GIVEN_UP = 3


class Pending(Kept):
    """Owner of the pending messages' records."""

    kind = 257

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._next_id = 1
        self._messages: dict[int, PendingMessage] = {}
        self._bytes = 0
        self._given_up: dict[int, None] = {}
        self._changes: Unconfirmed[tuple[Step, PendingMessage]] = Unconfirmed()

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def urgent(self) -> bool:
        return bool(self._changes)

    def add(
        self,
        topic: str,
        payload: bytes,
        now_s: float,
        times: dict[str, int] | None = None,
    ) -> int:
        """Take in a message; its id. Raises LimitReached."""
        if len(self._messages) >= self._max_messages:
            raise LimitReached("pending messages", self._max_messages, "max_pending")
        if self._bytes + len(payload) > self._max_bytes:
            raise LimitReached(
                "bytes of pending messages", self._max_bytes, "max_pending_bytes"
            )
        message = PendingMessage(
            self._next_id, topic, payload, int(now_s * 1000), times or {}
        )
        self._next_id += 1
        self._put(message)
        self._changes.add((Step.ADDED, message))
        return message.id

    def get(self, id_: int) -> PendingMessage | None:
        return self._messages.get(id_)

    def remove(self, message: PendingMessage) -> None:
        """Forget a message that was published, in the same group."""
        self._take_out(message.id)
        self._changes.add((Step.REMOVED, message))

    def give_up(self, message: PendingMessage) -> None:
        """Forget a message that became a dead letter, in the same group."""
        self._take_out(message.id)
        self._note_given_up(message.id)
        self._changes.add((Step.GIVEN_UP, message))

    def was_given_up(self, id_: int) -> bool:
        """Whether a message became a dead letter, as far as is remembered."""
        return id_ in self._given_up

    def expired(self, before_s: float) -> list[PendingMessage]:
        """Those that have waited since before then."""
        old = []
        for message in self._messages.values():  # oldest first
            if message.at_ms >= before_s * 1000:
                break
            old.append(message)
        return old

    def confirmed(self) -> None:
        """What the committed group changed stays so."""
        self._changes.confirm()

    def _put(self, message: PendingMessage) -> None:
        self._messages[message.id] = message
        self._bytes += len(message.payload)

    def _take_out(self, id_: int) -> None:
        if (message := self._messages.pop(id_, None)) is not None:
            self._bytes -= len(message.payload)

    def _note_given_up(self, id_: int) -> None:
        self._given_up[id_] = None
        if len(self._given_up) > MAX_GIVEN_UP:
            del self._given_up[next(iter(self._given_up))]

    # The journal's side

    def collect(self) -> list[tuple[bytes, bool]]:
        closed = self._changes.close()
        if not closed:
            return []
        added = [message for step, message in closed if step is Step.ADDED]
        removed = [message.id for step, message in closed if step is Step.REMOVED]
        given_up = [message.id for step, message in closed if step is Step.GIVEN_UP]
        return [(_encode(PendingChanges(added, removed, given_up)), True)]

    def taken_back(self) -> None:
        """Undo: a release can be repeated, a message that failed is not here."""
        for step, message in self._changes.take_back():
            if step is Step.ADDED:
                self._take_out(message.id)
            else:
                self._given_up.pop(message.id, None)
                self._put(message)
        self._messages = dict(sorted(self._messages.items()))  # oldest first, again

    def snapshot(self) -> bytes:
        messages = list(self._messages.values())
        return _encode((self._next_id, messages, list(self._given_up)))

    def restore(self, snapshot: bytes) -> None:
        self._next_id, messages, given_up = _decode_snapshot(snapshot)
        for message in messages:
            self._put(message)
        self._given_up = dict.fromkeys(given_up)

    def replay(self, record: Record) -> None:
        changes = _decode(record.data)
        for message in changes.added:
            self._put(message)
            self._next_id = max(self._next_id, message.id + 1)
        for id_ in changes.removed:
            self._take_out(id_)
        for id_ in changes.given_up:
            self._take_out(id_)
            self._note_given_up(id_)
