"""Events of a stream sorted: into the topic, or to the dead letters with the reason.

A panic is a text that some servers send instead of JSON: counted, and a dead letter.
What is no JSON object is one, too, unless the stream is raw. So is what is too large.

A key is read from the JSON of an event by a decoder made for its path alone: it checks
the whole text, and keeps one value.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import msgspec

from penstock.client.feed import FeedEvents
from penstock.errors import InvalidOption
from penstock.ingest.options import SseOptions
from penstock.wire.json_text import NOT_JSON, all_utf8, why_not_json
from penstock.wire.sse import ServerSentEvent
from penstock.wire.sse.parsing import MESSAGE


class NoObject(Exception):
    """JSON that is no object."""


class KeyReader:
    """Reads the value at ``path``: names with dots between them, or nothing."""

    def __init__(self, path: str) -> None:
        names = path.split(".") if path else []
        if not all(names):
            raise InvalidOption("key", path, "names with dots between them")
        self._names = names
        kind: Any = str | int | None
        for name in reversed(names):
            field = ("value", kind, None)
            made = msgspec.defstruct("Level", [field], rename={"value": name})
            kind = made | None
        top = made if names else msgspec.defstruct("Object", [])
        self._decode = msgspec.json.Decoder(top).decode
        levels = ".".join(["value"] * len(names))
        self._value = attrgetter(levels) if levels else None

    def key(self, data: bytes) -> bytes | None:
        """None if there is nothing of use; numbers are keys as they are written.

        Raises NoObject, ValueError for what is no JSON, RecursionError.
        """
        try:
            found: object = self._decode(data)
        except msgspec.ValidationError:
            # Something of another kind on the way, or no object at all.
            return self._walk(msgspec.json.decode(data))
        if self._value is None:
            return None
        try:
            return _encoded(self._value(found))
        except AttributeError:
            return None  # one on the way is null, or not there

    def _walk(self, found: object) -> bytes | None:
        if not isinstance(found, dict):
            raise NoObject
        for name in self._names:
            if not isinstance(found, dict):
                return None
            found = found.get(name)
        return _encoded(found)


def _encoded(found: object) -> bytes | None:
    if isinstance(found, str):
        return found.encode()
    if isinstance(found, int) and not isinstance(found, bool):
        return b"%d" % found
    return None


PANIC = "panic"
# Of what is refused for its size this much is kept.
MAX_LETTER_BYTES = 1 << 20

_UNFIT = (NoObject, *NOT_JSON)

StreamLetter = tuple[str, bytes]


class StreamNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a stream is: stored with its events, so it is true whatever happens."""

    last_event_id: str = ""
    received: int = 0
    panics: int = 0
    malformed: int = 0
    run: str = ""
    """Of the process that wrote it. Where events have no ids, two of them could come to
    the same counts with different events, and a feed tells writers by their notes."""

    @classmethod
    def of(cls, text: str) -> StreamNote:
        return _decode(text) if text else cls()

    def text(self) -> str:
        return msgspec.json.encode(self).decode()


_decode = msgspec.json.Decoder(StreamNote).decode


@dataclass(slots=True)
class Sorted:
    """What to store at once."""

    note: StreamNote
    """How far the stream is with it."""
    panics: int = 0
    payloads: list[bytes] = field(default_factory=list)
    keys: list[bytes | None] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    letters: list[StreamLetter] = field(default_factory=list)

    def put(self, data: bytes, key: bytes | None, headers: dict[str, str]) -> None:
        """Add an event for the topic."""
        self.payloads.append(data)
        self.keys.append(key)
        self.headers.append(headers)

    def batches(self, options: SseOptions, at_ms: int) -> list[FeedEvents]:
        """The events by topic, with a sample if there were panics."""
        found = []
        if self.payloads:
            keys = self.keys if any(self.keys) else None
            found.append(
                FeedEvents(options.topic, self.payloads, keys, None, self.headers)
            )
        if self.panics and options.samples is not None:
            sample = {"kind": "panics", "ms": None, "count": self.panics}
            text = msgspec.json.encode({**sample, "at_ms": at_ms})
            found.append(FeedEvents(options.samples, [text]))
        return found


class Sorter:
    """Sorts the events of one stream; ``source`` is what their headers say."""

    def __init__(self, options: SseOptions, source: str) -> None:
        self._raw = options.raw
        self._panic = options.panic.encode()
        self._source = source
        self._keys = KeyReader(options.key)
        self._run = secrets.token_hex(4)

    def sort(self, events: Sequence[ServerSentEvent], before: StreamNote) -> Sorted:
        """What comes of events behind ``before``."""
        good_text = all_utf8([event.data for event in events])
        sorted_ = Sorted(before)
        put, key_of, panic = sorted_.put, self._keys.key, self._panic
        for event in events:
            data, id, kind, size = event
            if size > len(data) or data == panic or not good_text:
                self._one(event, sorted_)
                continue
            try:
                put(data, key_of(data), self._headers(id, kind))
            except _UNFIT:
                self._one(event, sorted_)
        return self._noted(events, before, sorted_)

    def refused(
        self, event: ServerSentEvent, before: StreamNote, reason: str
    ) -> Sorted:
        """The same for one event that the broker does not take."""
        letter = (reason, event.data[:MAX_LETTER_BYTES])
        return self._noted([event], before, Sorted(before, letters=[letter]))

    def _noted(
        self, events: Sequence[ServerSentEvent], before: StreamNote, found: Sorted
    ) -> Sorted:
        letters = len(found.letters)
        found.note = StreamNote(
            last_event_id=events[-1].id,
            received=before.received + len(events),
            panics=before.panics + found.panics,
            malformed=before.malformed + letters - found.panics,
            run=self._run,
        )
        return found

    def _one(self, event: ServerSentEvent, found: Sorted) -> None:
        """The same for any event, with the reason if it is a dead letter."""
        data = event.data
        if event.is_cut:
            reason = f"event of {event.size} bytes exceeds {len(data)}"
            found.letters.append((reason, data[:MAX_LETTER_BYTES]))
            return
        if data == self._panic and data:
            found.panics += 1
            found.letters.append((PANIC, data))
            return
        key, reason = self._key(data)
        if reason and not self._raw:
            found.letters.append((reason, data))
            return
        found.put(data, key, self._headers(event.id, event.type))

    def _key(self, data: bytes) -> tuple[bytes | None, str]:
        """The key, and what keeps the data from being a JSON object."""
        try:
            data.decode()
            return self._keys.key(data), ""
        except NoObject:
            return None, "JSON, but no object"
        except NOT_JSON:
            return None, f"no JSON: {why_not_json(data)}"

    def _headers(self, id: str, kind: str) -> dict[str, str]:
        headers = {"source": self._source}
        if id:
            headers["sse-id"] = id
        if kind != MESSAGE:
            headers["sse-event"] = kind
        return headers
