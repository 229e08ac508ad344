"""A dead letter as HTTP tells it: its event is JSON like events everywhere."""

from __future__ import annotations

import msgspec

from penstock.desk.views.events import EventView
from penstock.desk.views.letters import LetterView
from penstock.http.event_json import EventJson, key_json, payload_json


class LetterJson(LetterView, frozen=True, kw_only=True):
    """All of the letter; ``event`` as in pages and streams, and always whole."""

    event: EventJson | None  # type: ignore[assignment]


def letter_json(letter: LetterView) -> LetterJson:
    fields = msgspec.structs.asdict(letter)
    found = letter.event
    fields["event"] = None if found is None else _event(letter.topic or "", found)
    return LetterJson(**fields)


def _event(topic: str, event: EventView) -> EventJson:
    key, key_encoding = key_json(event.key)
    encoding, payload, cut = payload_json(event.payload)
    return EventJson(
        topic,
        event.offset,
        event.id,
        event.timestamp,
        event.priority,
        key,
        key_encoding,
        event.headers,
        event.parent,
        event.producer,
        encoding,
        payload,
        len(event.payload),
        cut,
    )
