"""Rows of a DataFrame as events, by their columns; named as in Spark's Kafka sink.

    column     type                                      without it, or where it is null
    value      binary, string                            it has to be there
    topic      string                                    the option topic
    key        binary, string                            no key
    headers    array<struct<key:string, value:binary>>,  no headers
               map<string, string>; values may be either
    priority   tinyint, smallint, int, bigint            0
    id         string                                    given by the broker
    parent     string                                    no parent
    times      timestamp; those that a publisher says    it has none

Other columns are left out, as Kafka's sink does; so what was read from a topic can be
written to another as it is. But one whose name looks like a mistyped one is an error.

Values go from Arrow to lists in one call for each column, checks are made by Arrow, and
nothing is done row by row but what headers need.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.client.outgoing import PART_BYTES, PART_EVENTS
from penstock.errors import BadRow, InvalidName, UnfitFrame
from penstock.model.event import (
    MAX_ID_BYTES,
    MAX_PRIORITY,
    SETTABLE,
    TEXTS,
    TIMES,
    Field,
)
from penstock.model.moment import MAX_TIME_MS
from penstock.model.topic import topic_name
from penstock.table.naming import NAMES

_BYTES = ("binary", "string")
_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_HEADERS = tuple(
    form.format(value)
    for form in ("array<struct<key:string,value:{}>>", "map<string,{}>")
    for value in _BYTES
)
_KINDS: Mapping[str, tuple[str, ...]] = {
    "bytes": _BYTES,
    "text": ("string",),
    "map": _HEADERS,
    "level": _NUMBERS,
    "time": ("timestamp",),
}
TYPES: Mapping[str, tuple[str, ...]] = {
    "value": _BYTES,
    "topic": ("string",),
    **{one.table: _KINDS[one.kind] for one in SETTABLE},
}
# Columns of the source that say where an event was; a new one is elsewhere.
PLACE = frozenset(NAMES) - TYPES.keys()
# How alike a name has to be to be a mistyped one.
_ALIKE = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBatch:
    """Events for one topic, as many as fit into one message."""

    topic: str
    rows: np.ndarray[Any, np.dtype[np.int64]]
    """Which rows they are."""
    payloads: list[bytes]
    columns: dict[str, Any]
    """What else is said of them, by the names of the columns."""


@dataclass(frozen=True, slots=True)
class RowLayout:
    """What a DataFrame is made of, as far as events are."""

    places: dict[str, int]
    """Column of Arrow by the name of what it says."""
    topic: str | None
    """Of all rows, whatever their column says."""

    @classmethod
    def of(cls, columns: Iterable[tuple[str, str]], topic: str | None) -> RowLayout:
        """A frame with columns of these names and types, as Spark calls them.

        Raises UnfitFrame, InvalidName.
        """
        places: dict[str, int] = {}
        for place, (name, type_) in enumerate(columns):
            known = name.lower()
            if known in places:
                raise UnfitFrame(name, "is there twice: names have no case")
            if known in TYPES:
                _check_type(name, type_, TYPES[known])
                places[known] = place
            elif known not in map(str.lower, PLACE):
                _check_name(name)
        if "value" not in places:
            raise UnfitFrame("value", "is missing: it is what an event holds")
        if topic is not None:
            topic_name(topic)
        elif "topic" not in places:
            raise UnfitFrame("topic", "is missing, and so is the option topic")
        return cls(places, topic)

    def pieces(
        self, batch: pa.RecordBatch, partition: int, first_row: int
    ) -> Iterator[RowBatch]:
        """The rows of a batch, by topic; raises BadRow for the first that is bad."""
        rows = _Rows(self, batch, partition, first_row)
        rows.check()
        for topic, one in rows.by_topic():
            yield from one.cut(topic)


class _Rows:
    """Some rows of a task, with the numbers they have there."""

    def __init__(
        self,
        frame: RowLayout,
        batch: pa.RecordBatch,
        partition: int,
        first_row: int,
        numbers: np.ndarray[Any, np.dtype[np.int64]] | None = None,
    ) -> None:
        self._frame = frame
        self._batch = batch
        self._partition = partition
        self._numbers = (
            np.arange(first_row, first_row + batch.num_rows, dtype=np.int64)
            if numbers is None
            else numbers
        )

    def check(self) -> None:
        self._refuse("value", pc.is_null(self._column("value")), "it may not be null")
        if self._frame.topic is None:
            topics = self._column("topic")
            self._refuse("topic", pc.is_null(topics), "it may not be null")
            for topic in pc.unique(topics).to_pylist():
                try:
                    topic_name(topic)
                except InvalidName as error:
                    self._refuse("topic", pc.equal(topics, topic), error.reason)
        for field in TEXTS:
            if self._has(field.table):
                self._check_ids(field.table)
        if self._has("priority"):
            given = self._column("priority")
            wrong = pc.or_(pc.less(given, 0), pc.greater(given, MAX_PRIORITY))
            self._refuse("priority", wrong, f"must be from 0 to {MAX_PRIORITY}")

        for field in TIMES:
            if self._has(field.table):
                given = _ms(self._column(field.table))
                wrong = pc.or_(pc.less(given, 1), pc.greater(given, MAX_TIME_MS))
                limit = "must be after 1970 and before the year 10000"
                self._refuse(field.table, wrong, limit)

    def by_topic(self) -> Iterator[tuple[str, _Rows]]:
        """The same rows, each topic's for itself, in the order they come up."""
        if self._frame.topic is not None:
            yield self._frame.topic, self
            return
        codes = self._column("topic").dictionary_encode()
        names = codes.dictionary.to_pylist()
        if len(names) == 1:
            yield names[0], self
            return
        numbers = codes.indices.to_numpy(zero_copy_only=False)
        for code, name in enumerate(names):
            chosen = np.flatnonzero(numbers == code)
            yield name, self._part(self._batch.take(pa.array(chosen)), chosen)

    def cut(self, topic: str) -> Iterator[RowBatch]:
        """In pieces that are no larger than a message, but for a single event."""
        sizes = pc.binary_length(_binary(self._column("value"))).to_numpy()
        ends = np.cumsum(sizes, dtype=np.int64)
        lo, count = 0, self._batch.num_rows
        while lo < count:
            room = PART_BYTES + (ends[lo - 1] if lo else 0)
            hi = int(np.searchsorted(ends, room, side="right"))
            hi = min(max(hi, lo + 1), lo + PART_EVENTS)
            rows = slice(lo, hi)
            part = self._part(self._batch.slice(lo, hi - lo), rows)
            yield part.piece(topic)
            lo = hi

    def piece(self, topic: str) -> RowBatch:
        payloads: list[bytes] = _values(_binary(self._column("value")))
        return RowBatch(
            topic=topic,
            rows=self._numbers,
            payloads=payloads,
            columns={one.column: self._list(one) for one in SETTABLE},
        )

    def _has(self, name: str) -> bool:
        return name in self._frame.places

    def _column(self, name: str) -> pa.Array:
        return self._batch.column(self._frame.places[name])

    def _part(self, batch: pa.RecordBatch, chosen: Any) -> _Rows:
        return _Rows(
            self._frame, batch, self._partition, 0, numbers=self._numbers[chosen]
        )

    def _list(self, field: Field) -> Any:
        """A column as a list; None if no row says anything."""
        if not self._has(field.table):
            return None
        column = self._column(field.table)
        if column.null_count == len(column):
            return None
        match field.kind:
            case "map":
                return self._headers(column)
            case "level":
                return _values(pc.fill_null(column, 0))
            case "bytes":
                return _values(_binary(column))
            case "time":
                return _values(pc.fill_null(_ms(column), 0))
        return _values(column)

    def _headers(self, column: pa.Array) -> list[dict[str, str]]:
        if pa.types.is_map(column.type):
            names, values = column.keys, column.items
        else:
            pairs = column.values  # whole; offsets point into it
            names, values = pairs.field("key"), pairs.field("value")
        ends = column.offsets.to_numpy()
        first, last = int(ends[0]), int(ends[-1])
        names = names.slice(first, last - first)
        values = values.slice(first, last - first)
        ends = (ends - first).tolist()
        self._check_headers(names, values, ends)
        keys, texts = _values(names), _values(_text(values))
        found = [
            dict(zip(keys[lo:hi], texts[lo:hi], strict=True))
            for lo, hi in zip(ends, ends[1:], strict=False)
        ]
        for index, headers in enumerate(found):
            if len(headers) < ends[index + 1] - ends[index]:
                twice = keys[ends[index] : ends[index + 1]]
                raise self._bad(index, "headers", twice, "a name is there twice")
        return found

    def _check_headers(self, names: pa.Array, values: pa.Array, ends: Any) -> None:
        nulls = np.flatnonzero(
            pc.or_(pc.is_null(names), pc.is_null(values)).to_numpy(zero_copy_only=False)
        )
        if len(nulls):
            at = int(np.searchsorted(ends, nulls[0], side="right")) - 1
            name = names[int(nulls[0])].as_py()
            raise self._bad(at, "headers", name, "neither name nor value may be null")
        try:
            _text(values)
        except pa.ArrowInvalid:
            at, pair = _first_undecodable(values, ends)
            raise self._bad(at, "headers", pair, "a value is not UTF-8") from None

    def _check_ids(self, name: str) -> None:
        given = self._column(name)
        size = pc.binary_length(given)
        self._refuse(name, pc.equal(size, 0), "it is empty")
        limit = f"at most {MAX_ID_BYTES} bytes"
        self._refuse(name, pc.greater(size, MAX_ID_BYTES), limit)
        printable = pc.utf8_is_printable(given)
        self._refuse(name, pc.invert(printable), "it cannot be printed")
        around = pc.not_equal(pc.utf8_trim(given, " "), given)
        self._refuse(name, around, "it begins or ends with a space")

    def _refuse(self, column: str, wrong: pa.Array, reason: str) -> None:
        """Raise for the first row that is wrong, if one is."""
        if pc.any(wrong).as_py():
            at = int(pc.index(wrong, True).as_py())
            value = self._column(column)[at].as_py()
            raise self._bad(at, column, value, reason)

    def _bad(self, at: int, column: str, value: object, reason: str) -> BadRow:
        return BadRow(self._partition, int(self._numbers[at]), column, value, reason)


def _check_type(name: str, type_: str, wanted: tuple[str, ...]) -> None:
    if type_.replace(" ", "") not in wanted:
        raise UnfitFrame(name, f"is {type_}: must be {' or '.join(wanted)}")


def _check_name(name: str) -> None:
    near = difflib.get_close_matches(name.lower(), TYPES, 1, _ALIKE)
    if near:
        raise UnfitFrame(name, f"is not known: did you mean {near[0]}?")


def _binary(column: pa.Array) -> pa.Array:
    """The bytes of a column of bytes or text."""
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    if pa.types.is_large_string(column.type):
        return column.cast(pa.large_binary())
    return column


def _ms(column: pa.Array) -> pa.Array:
    """Times in milliseconds; what is finer is cut off."""
    return column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())


def _text(column: pa.Array) -> pa.Array:
    """The text of a column of text or UTF-8; raises ArrowInvalid."""
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _values(column: pa.Array) -> Any:
    return column.to_numpy(zero_copy_only=False).tolist()


def _first_undecodable(values: pa.Array, ends: Any) -> tuple[int, bytes]:
    for index, value in enumerate(values.to_pylist()):
        try:
            value.decode()
        except UnicodeDecodeError:
            return int(np.searchsorted(ends, index, side="right")) - 1, value
    raise AssertionError("Arrow has refused one of them")
