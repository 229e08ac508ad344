"""One failed try of an event: when, which, and why."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

# A text is written with every change of its event, and again into its dead letter.
MAX_MESSAGE_BYTES = 4_096
MAX_TRACEBACK_BYTES = 16_384
# An error type is a name, not a story.
MAX_KIND_BYTES = 256

REFUSED = "Refused"
"""The consumer said no, and not with what kind of error."""
TIMEOUT = "Timeout"
"""There was no answer in time."""
LOST = "Lost"
"""The consumer that had the event went away in the middle of it."""
EXPIRED = "Expired"
"""Its time was over before it could be sent."""
GONE = "Gone"
"""Retention or compaction took the event before it could be tried again."""


class Failure(msgspec.Struct, array_like=True, frozen=True):
    """Why a try failed; ``tries`` says which: 1 is the first."""

    at_ms: int
    tries: int
    kind: str
    message: str
    traceback: str = ""
    duration_s: float | None = None

    @property
    def line(self) -> str:
        """The error in one line, as Python would print it."""
        if self.kind in ("", REFUSED):
            return self.message
        return f"{self.kind}: {self.message}" if self.message else self.kind

    @property
    def size(self) -> int:
        """Bytes of its texts."""
        return sum(map(_bytes, (self.kind, self.message, self.traceback)))

    def noted(self, tries: int, now_s: float) -> Failure:
        """As it is kept: of this try, its texts bounded, of Unicode that can be stored.

        Of a traceback the end is kept: it names the error.
        """
        return Failure(
            self.at_ms or int(now_s * 1000),
            tries,
            _first(self.kind, MAX_KIND_BYTES),
            _first(self.message, MAX_MESSAGE_BYTES),
            _last(self.traceback, MAX_TRACEBACK_BYTES),
            self.duration_s,
        )


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _first(text: str, most: int) -> str:
    """As much of a text as has room, from its beginning."""
    text = _storable(text[:most])
    return text if text.isascii() else text.encode()[:most].decode(errors="ignore")


def _last(text: str, most: int) -> str:
    text = _storable(text[-most:])
    return text if text.isascii() else text.encode()[-most:].decode(errors="ignore")


def _storable(text: str) -> str:
    """Text without lone surrogates, which file names and broken input bring along."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="replace").decode()
    return text


def refused(message: str) -> Failure:
    """A consumer said no; the subscription fills in time and try."""
    return Failure(0, 0, REFUSED, message)


def of_lines(lines: Sequence[str | Failure]) -> list[Failure]:
    """Failures of records that were written when there was only a text of each."""
    return [
        Failure(0, number, "", line) if isinstance(line, str) else line
        for number, line in enumerate(lines, 1)
    ]
