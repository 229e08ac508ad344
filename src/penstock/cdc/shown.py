"""What people see of a change: a message, and a priority, each from its document.

The message is a field of the document, as it is there. The priority counts how many of
some thresholds another field has reached, so the same document has the same priority
whenever it is told. Both are of the document after the change; of one that is gone, of
the document before it, if the source tells that.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import msgspec

# What is longer is no message: it would be in the payload twice.
MAX_MESSAGE_BYTES = 64 << 10
# Of a document without the field, and of one that has something else there.
DEFAULT_PRIORITY = 0

NOTHING = msgspec.Raw(b"null")
# What a decoder raises: the last one of very deep nesting.
_NO_OBJECT = (ValueError, RecursionError)

Path = tuple[str, ...]
"""Names of fields, each inside of the one before."""
ValueReader = Callable[[msgspec.Raw], msgspec.Raw]

_number = msgspec.json.Decoder(float).decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Of the changes of one collection. ``thresholds`` ascend."""

    message: Path | None = None
    score: Path | None = None
    thresholds: tuple[float, ...] = ()

    def messages(self, documents: Iterable[msgspec.Raw]) -> list[msgspec.Raw]:
        """The message in each of them; null if there is none."""
        assert self.message is not None, "asked of those that have one"
        found = map(_reader(self.message), documents)
        return [NOTHING if len(one) > MAX_MESSAGE_BYTES else one for one in found]

    def priorities(self, documents: Iterable[msgspec.Raw]) -> list[int] | None:
        """The priority of each of them; None if there is nothing to tell it by."""
        if self.score is None:
            return None
        return [self._level(one) for one in map(_reader(self.score), documents)]

    def _level(self, score: msgspec.Raw) -> int:
        try:
            return bisect_right(self.thresholds, _number(score))
        except _NO_OBJECT:
            return DEFAULT_PRIORITY


def shown_document(before: msgspec.Raw, after: msgspec.Raw) -> msgspec.Raw:
    """The document to look at; none with a field is as short as nothing is."""
    return before if len(after) == len(NOTHING) else after


@lru_cache
def _reader(path: Path) -> ValueReader:
    """Reads what a document has in a field, null if nothing; the rest is skipped."""
    field = msgspec.defstruct(
        "Field",
        [("value", msgspec.Raw, NOTHING)],
        rename={"value": path[0]},
        gc=False,
    )
    decode = msgspec.json.Decoder(field).decode

    def read(document: msgspec.Raw) -> msgspec.Raw:
        try:
            found: msgspec.Raw = decode(document).value  # type: ignore[attr-defined]
        except _NO_OBJECT:
            return NOTHING
        return found

    if len(path) == 1:
        return read
    inner = _reader(path[1:])
    return lambda document: inner(read(document))
