"""Messages whose publisher has sent PUB and not yet PUBREL (inbound QoS 2).

A message is pending from its PUB until its PUBREL publishes it; both steps are durable
before they are answered. Its id is never given out twice.

Crash promise: precious. Replayed from the journal, carried by every checkpoint. A
release whose group failed is undone, so that the PUBREL can be repeated.
"""

from __future__ import annotations

import msgspec

from penstock.delivery.unconfirmed import Unconfirmed
from penstock.errors import LimitReached
from penstock.log import Record


class Message(msgspec.Struct, array_like=True, frozen=True):
    """A message on its way in."""

    id: int
    topic: str
    payload: bytes
    at_ms: int


class Changes(msgspec.Struct, array_like=True, frozen=True):
    added: list[Message]
    removed: list[int]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Changes).decode
_decode_snapshot = msgspec.msgpack.Decoder(tuple[int, list[Message]]).decode


class Pending:
    """Owner of the pending messages' records; see log.Owner."""

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._next_id = 1
        self._messages: dict[int, Message] = {}
        self._bytes = 0
        self._changes: Unconfirmed[tuple[bool, Message]] = Unconfirmed()
        """Whether it was added, or else removed, and what."""

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def urgent(self) -> bool:
        return bool(self._changes)

    def add(self, topic: str, payload: bytes, now_s: float) -> int:
        """Take in a message; its id. Raises LimitReached."""
        if len(self._messages) >= self._max_messages:
            raise LimitReached("pending messages", self._max_messages, "max_pending")
        if self._bytes + len(payload) > self._max_bytes:
            raise LimitReached(
                "bytes of pending messages", self._max_bytes, "max_pending_bytes"
            )
        message = Message(self._next_id, topic, payload, int(now_s * 1000))
        self._next_id += 1
        self._put(message)
        self._changes.add((True, message))
        return message.id

    def get(self, id_: int) -> Message | None:
        return self._messages.get(id_)

    def remove(self, message: Message) -> None:
        """Forget a message that was published, in the same group."""
        self._take_out(message.id)
        self._changes.add((False, message))

    def expired(self, before_s: float) -> list[Message]:
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

    def _put(self, message: Message) -> None:
        self._messages[message.id] = message
        self._bytes += len(message.payload)

    def _take_out(self, id_: int) -> None:
        if (message := self._messages.pop(id_, None)) is not None:
            self._bytes -= len(message.payload)

    # The journal's side

    def collect(self) -> list[tuple[bytes, bool]]:
        closed = self._changes.close()
        if not closed:
            return []
        added = [message for is_added, message in closed if is_added]
        removed = [message.id for is_added, message in closed if not is_added]
        return [(_encode(Changes(added, removed)), True)]

    def taken_back(self) -> None:
        """Undo: a release can be repeated, a message that failed is not here."""
        for is_added, message in self._changes.take_back():
            if is_added:
                self._take_out(message.id)
            else:
                self._put(message)
        self._messages = dict(sorted(self._messages.items()))  # oldest first, again

    def snapshot(self) -> bytes:
        return _encode((self._next_id, list(self._messages.values())))

    def restore(self, snapshot: bytes) -> None:
        self._next_id, messages = _decode_snapshot(snapshot)
        for message in messages:
            self._put(message)

    def replay(self, record: Record) -> None:
        changes = _decode(record.data)
        for message in changes.added:
            self._put(message)
            self._next_id = max(self._next_id, message.id + 1)
        for id_ in changes.removed:
            self._take_out(id_)
