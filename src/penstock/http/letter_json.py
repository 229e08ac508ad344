"""A dead letter as HTTP tells it: its event is JSON like events everywhere."""

from __future__ import annotations

import msgspec

from penstock.desk.views.letters import LetterView
from penstock.http.event_json import EventJson, view_json


class LetterJson(LetterView, frozen=True, kw_only=True):
    """All of the letter; ``event`` as in pages and streams, and always whole."""

    event: EventJson | None  # type: ignore[assignment]


def letter_json(letter: LetterView) -> LetterJson:
    fields = msgspec.structs.asdict(letter)
    found = letter.event
    fields["event"] = None if found is None else view_json(letter.topic or "", found)
    return LetterJson(**fields)
