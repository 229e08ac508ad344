"""What columns are called, and what to say of a topic that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from penstock.model.event import FIELDS

CORRUPT = "_corrupt"
# As Spark's Kafka source names them.
_KAFKA = (
    *("key", "value", "topic", "partition"),
    *("offset", "timestamp", "timestampType", "headers"),
)
_FIRST = ("id", "priority")
_TABLE = tuple(one.table for one in FIELDS)
# And behind them those of our own.
_OWN = (*_FIRST, *(name for name in _TABLE if name not in _KAFKA + _FIRST))
NAMES = (*_KAFKA, *_OWN)
# Behind the payload, for people who ask in SQL.
VIEW = (
    *("priority", "id", "headers"),
    *(name for name in _OWN if name not in _FIRST),
    *("topic", "partition", "timestampType"),
)
NEVER_NULL = frozenset(NAMES) - {one.table for one in FIELDS if one.nullable}
# Names of topics that are listed when there is none of the name asked for.
MAX_NAMES = 5


def everything(
    fields: Sequence[str], *, include_headers: bool
) -> dict[str, str | None]:
    """All columns there can be by name: which of NAMES, or None for the payload's.

    ``fields`` are those of the payload. Where one has the name of a column, which has
    no case in SQL, the column gets an underscore, or as many as it takes.
    """
    columns: dict[str, str | None] = dict.fromkeys(fields)
    taken = {name.lower() for name in fields}
    for own in [CORRUPT, *NAMES] if fields else NAMES:
        if own != "headers" or include_headers:
            name = own
            while name.lower() in taken:
                name = f"_{name}"
            taken.add(name.lower())
            columns[name] = own
    return columns


def view(fields: Sequence[str]) -> dict[str, str | None]:
    """The columns of a topic for people who ask in SQL, in the order of ``SELECT *``.

    The offset is the first: it costs least, and is what DuckDB asks for to count rows.
    A payload that has fields is not given as it is as well.
    """
    known = everything(fields, include_headers=True)
    named = {own: name for name, own in known.items() if own is not None}
    payload = list(fields) or [named["key"], named["value"]]
    order = [named["offset"], named["timestamp"], *payload]
    order += [named[own] for own in VIEW if own in named]
    if fields:
        order += [named["key"], named[CORRUPT]]
    return {name: known[name] for name in order}


def suggestion(wanted: str, names: Sequence[str]) -> str:
    """Which of the names was perhaps meant, or which there are."""
    near = difflib.get_close_matches(wanted, names, MAX_NAMES, 0.5)
    if near:
        return f"did you mean {', '.join(near)}?"
    if not names:
        return "there are no topics yet"
    more = ", …" if len(names) > MAX_NAMES else ""
    return f"topics are {', '.join(names[:MAX_NAMES])}{more}"
