"""Which dead letters are meant, and which of them are alike.

Letters are alike if the same subscriber failed with the same kind of error on the same
topic, and said the same but for numbers, ids and quoted text: that is their *pattern*.
"""

from __future__ import annotations

import re
from typing import Protocol

import msgspec

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
