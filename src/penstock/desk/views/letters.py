"""What the desk tells of dead letters, which of them are meant, and which are alike.

Letters are alike if the same subscriber failed with the same kind of error on the same
topic, and said the same but for numbers, ids and quoted text: that is their *pattern*.
"""

from __future__ import annotations

import re
from typing import Literal, Protocol

import msgspec

from penstock.desk.views import View
from penstock.desk.views.audit import AuditRow
from penstock.desk.views.events import EventView, TryRow

Status = Literal["open", "republished", "dropped", "closed"]

# Of a reason, for its pattern: what comes behind tends to be detail.
PATTERN_CHARACTERS = 200
_VARIABLE = re.compile(
    r"""
    '[^'\n]*' | "[^"\n]*"                                 # quoted
    | \b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b  # an id
    | \b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{6,}\b               # hexadecimal
    | \d+(?:[.,:]\d+)*                                    # a number or a time
    """,
    re.VERBOSE,
)


class LetterRow(View, frozen=True, kw_only=True):
    """``raw`` is the beginning of raw input that has ``raw_bytes``.

    ``kind`` is that of the last error; ``amended`` events were edited before.
    """

    number: int
    status: Status
    at_ms: int
    gateway: str
    reason: str
    kind: str | None
    topic: str | None
    offset: int | None
    id: str | None
    subscriber: str | None
    tries: int
    amended: bool
    raw: bytes | None
    raw_bytes: int


class LetterPage(View, frozen=True, kw_only=True):
    letters: list[LetterRow]
    next: int | None


class LetterView(LetterRow, frozen=True, kw_only=True):
    """``raw`` is whole; ``event`` is None if there is none, or none any more.

    ``event_from`` says where it is: in its topic, or only here. ``errors`` has a line
    for each of the failures. ``history_cut``: not all of the audit trail was searched.
    """

    pattern: str
    errors: list[str]
    failures: list[TryRow]
    event: EventView | None
    event_from: Literal["log", "letter"] | None
    history: list[AuditRow]
    history_cut: bool


class GroupRow(View, frozen=True, kw_only=True):
    """Open letters that are alike; ``example`` is the newest of them."""

    subscriber: str | None
    topic: str | None
    gateway: str
    kind: str | None
    pattern: str
    count: int
    first_ms: int
    last_ms: int
    first: int
    example: int


class GroupPage(View, frozen=True, kw_only=True):
    groups: list[GroupRow]
    next: int | None
    end: int


class Done(View, frozen=True, kw_only=True):
    """What became of one letter: ``text`` says it, ``done`` whether it is as asked.

    ``fresh``: it was done now, not before.
    """

    number: int
    done: bool
    text: str
    fresh: bool = False


class DonePage(View, frozen=True, kw_only=True):
    results: list[Done]
    next: int | None


def pattern_of(reason: str) -> str:
    """The first line of a reason without what differs from event to event."""
    line = reason[: 2 * PATTERN_CHARACTERS].partition("\n")[0]
    return _VARIABLE.sub("…", line)[:PATTERN_CHARACTERS]


class Known(Protocol):
    """What a filter looks at."""

    @property
    def subscriber(self) -> str | None: ...
    @property
    def topic(self) -> str | None: ...
    @property
    def gateway(self) -> str: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def reason(self) -> str: ...
    @property
    def at_ms(self) -> int: ...


class Filter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which letters; what is left out does not matter.

    ``reason`` is a part of it. ``gateway`` is all of it or its first word: ``json``
    takes ``json consumer``. ``error`` is the kind of the last error. ``since_ms`` is
    included, ``until_ms`` is not.
    """

    subscriber: str | None = None
    topic: str | None = None
    gateway: str | None = None
    error: str | None = None
    reason: str | None = None
    pattern: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def takes(self, letter: Known) -> bool:
        return (
            self.subscriber in (None, letter.subscriber)
            and self.topic in (None, letter.topic)
            and self.gateway in (None, letter.gateway, _first_word(letter.gateway))
            and (self.error is None or self.error == (letter.kind or ""))
            and (self.reason is None or self.reason.lower() in letter.reason.lower())
            and (self.since_ms is None or letter.at_ms >= self.since_ms)
            and (self.until_ms is None or letter.at_ms < self.until_ms)
            and (self.pattern is None or self.pattern == pattern_of(letter.reason))
        )


def alike(letter: Known) -> Filter:
    """The filter that takes the letters that are like this one."""
    return Filter(
        subscriber=letter.subscriber,
        topic=letter.topic,
        gateway=letter.gateway,
        error=letter.kind or "",
        pattern=pattern_of(letter.reason),
    )


def _first_word(text: str) -> str:
    return text.partition(" ")[0]
