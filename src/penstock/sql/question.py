"""One question for a process of its own, and what comes of it.

The process reads a ``SqlQuestion`` as JSON from its standard input and writes to its
standard output. Its exit code says what that is: ``ANSWERED``, the answer as JSON;
``REFUSED``, a ``SqlRefusal``; anything else is a mistake of ours, with its traceback,
or no exit at all: it was killed.
"""

from __future__ import annotations

import msgspec

from penstock.errors import InvalidQuery, PenstockError, TooMuchAsked

PROGRAM = "penstock.sql.boxed"
ANSWERED, REFUSED = 0, 3
# What a refusal may be; whatever else is said in the words of an InvalidQuery.
KINDS: tuple[type[PenstockError], ...] = (InvalidQuery, TooMuchAsked)
# Of a text that is passed on: DuckDB lists candidates without an end.
MAX_TEXT = 2_000


class SqlQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """``topics`` are all that there are for it; ``schemas`` those of some of them.

    The limits are those of the settings that ``http/options.py`` describes.
    """

    data: str
    query: str
    topics: list[str]
    schemas: dict[str, str]
    seconds: float
    memory_bytes: int
    rows: int
    answer_bytes: int


class SqlRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """An error of ``KINDS`` by name, and what it is made with."""

    error: str
    arguments: list[str | int | float]


def refusal_of(error: PenstockError) -> SqlRefusal:
    if not isinstance(error, KINDS):
        error = InvalidQuery(error.for_client, error.hint)
    arguments = [one[:MAX_TEXT] if isinstance(one, str) else one for one in error.args]
    return SqlRefusal(error=type(error).__name__, arguments=arguments)


def error_of(refusal: SqlRefusal) -> PenstockError:
    """The error that was refused with; raises LookupError if it is none of ours."""
    kind = {one.__name__: one for one in KINDS}[refusal.error]
    return kind(*refusal.arguments)


def too_long(seconds: float) -> TooMuchAsked:
    return TooMuchAsked("s", seconds, "http.sql_s")


def too_much_memory(size: int) -> TooMuchAsked:
    return TooMuchAsked("bytes of memory", size, "http.sql_memory_bytes")
