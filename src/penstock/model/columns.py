"""Events in columns: plain lists, one for each field of the list that some event has.

Optional columns stay ``None`` while every event has the default, so a payload-only
publisher pays for payloads alone: nothing here looks at fields once for each event.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import add
from typing import Any, TypedDict, TypeVar, Unpack, cast

from penstock.errors import InvalidBatch
from penstock.model.event import FIELDS, OPTIONAL, SETTABLE, TIMES, Event, Field
from penstock.model.moment import MAX_TIME_MS

T = TypeVar("T")
Headers = Mapping[str, str]

# Arrow's 32-bit offsets end at 2 GiB; a frame this size is already unwise.
MAX_FRAME_BYTES = 1 << 28
# Leaves room for the frame's header, column table and paddings.
MAX_BATCH_BYTES = MAX_FRAME_BYTES - 4096
# What a row takes at most besides its bytes: timestamp, priority, six int32 offsets
# and a bit of validity each; and a header its two.
_ROW_BYTES = 40
_ENTRY_BYTES = 8
_TIME_BYTES = 8

_TIMES = frozenset(one.column for one in TIMES)
_SETTABLE = frozenset(one.column for one in SETTABLE)
_FIELD_OF = {one.column: one for one in OPTIONAL}
# All but the topic, which all events of a batch have in common.
STORED = FIELDS[1:]


class PublishColumns(TypedDict, total=False):
    """What publishers may say of some events, by column: entry ``i`` is of event ``i``.

    A column that is None, or not there: all events have the default.
    """

    ids: Sequence[str | None] | None
    keys: Sequence[bytes | None] | None
    priorities: Sequence[int] | None
    headers: Sequence[Headers] | None
    parents: Sequence[str | None] | None
    expires: Sequence[int | None] | None
    not_before: Sequence[int | None] | None


class Columns:
    """Some events in columns. ``add`` or ``extend`` them, ``check`` once."""

    payloads: list[bytes]
    timestamps: list[int]
    # As class attributes: those that no event has cost nothing.
    ids: list[str | None] | None = None
    keys: list[bytes | None] | None = None
    priorities: list[int] | None = None
    headers: list[Headers] | None = None
    parents: list[str | None] | None = None
    producers: list[str | None] | None = None
    # 0: the event has none.
    expires: list[int] | None = None
    not_before: list[int] | None = None
    size: int = 0
    # Offsets relative to the base; None: dense. Only compaction sets it.
    offsets: list[int] | None = None
    # Offsets to cover, if there are more than the events need.
    span: int = 0
    # Whether generated ids say the time of their events, not that of the base.
    ids_by_time: bool = False

    def __init__(
        self,
        payloads: Iterable[bytes] = (),
        timestamp_ms: int | Sequence[int] = 0,
        *,
        producer: str | None = None,
        **columns: Unpack[PublishColumns],
    ) -> None:
        self.payloads = list(payloads)
        count = len(self.payloads)
        if isinstance(timestamp_ms, int):
            self.timestamps = [timestamp_ms] * count
        else:
            self.timestamps = list(timestamp_ms)
        if columns:
            self.take(columns)
        if producer is not None:
            self.producers = [producer] * count

    def take(self, columns: Mapping[str, Any]) -> None:
        """Have columns that a publisher has given."""
        # Any: a column of whichever field.
        for name, column in columns.items():
            if name not in _SETTABLE:
                raise TypeError(f"events have no column {name!r} that can be given")
            if column is None:
                continue
            if name in _TIMES and None in column:
                column = [one or 0 for one in column]
            setattr(self, name, list(column))

    def __len__(self) -> int:
        return len(self.payloads)

    def add(self, event: Event) -> None:
        """Append one event with everything it has but its offset."""
        one = Columns([event.payload], event.timestamp_ms)
        for field in OPTIONAL:
            value = getattr(event, field.attribute)
            if value is not None and value != field.blank:
                setattr(one, field.column, [value])
        self.extend(one)

    def pick(self, indexes: Sequence[int]) -> Columns:
        """Some of the events, as columns of their own."""
        picked = Columns(map(self.payloads.__getitem__, indexes))
        picked.timestamps = [*map(self.timestamps.__getitem__, indexes)]
        for name, column in self.given().items():
            setattr(picked, name, [*map(column.__getitem__, indexes)])
        return picked

    def part(self, lo: int, hi: int) -> Columns:
        """Neighbours, as columns of their own."""
        part = Columns(self.payloads[lo:hi], self.timestamps[lo:hi])
        for name, column in self.given().items():
            setattr(part, name, column[lo:hi])
        return part

    def given(self) -> dict[str, Any]:
        """The optional columns that are there, by name."""
        # Any: the values of whichever field.
        # Those that were never set are not among the attributes of this one.
        return {
            name: column
            for name, column in self.__dict__.items()
            if name in _FIELD_OF and column is not None
        }

    def expire_after(self, after_ms: int) -> None:
        """Have those expire that say nothing of it, this long after their time."""
        given = self.expires or [0] * len(self.payloads)
        pairs = zip(given, self.timestamps, strict=True)
        self.expires = [one or at_ms + after_ms for one, at_ms in pairs]

    def expire_each_after(self, after_ms: Sequence[int]) -> None:
        """The same, where each has a time of its own; 0: it does not."""
        given = self.expires or [0] * len(self.payloads)
        rows = zip(given, self.timestamps, after_ms, strict=True)
        self.expires = [one or (after and at_ms + after) for one, at_ms, after in rows]

    def extend(self, other: Columns) -> None:
        """Append all events of ``other``."""
        given, more = self.given(), other.given()
        if not (given or self.payloads):  # a copy
            for name, column in more.items():
                setattr(self, name, column.copy())
        elif given or more:
            self._extend_metadata(given, more, len(self.payloads), len(other.payloads))
        self.payloads.extend(other.payloads)
        self.timestamps.extend(other.timestamps)

    def _extend_metadata(
        self, given: dict[str, Any], more: dict[str, Any], mine: int, theirs: int
    ) -> None:
        for name, column in more.items():
            if name not in given:
                given[name] = [_FIELD_OF[name].blank] * mine
                setattr(self, name, given[name])
            given[name].extend(column)
        for name in given.keys() - more.keys():
            given[name].extend([_FIELD_OF[name].blank] * theirs)

    def check(self, max_event_bytes: int = MAX_BATCH_BYTES) -> int:
        """The size at most; raises InvalidBatch for what cannot be stored."""
        count = len(self.payloads)
        if not count:
            raise InvalidBatch("number of events", 0, "at least 1")
        wrong = set(map(type, self.payloads)) - {bytes}
        if wrong:
            raise InvalidBatch("payload", f"of {wrong.pop().__name__}", "bytes")
        total = sum(map(len, self.payloads))
        if total > max_event_bytes:
            largest = max(map(len, self.payloads))
            if largest > max_event_bytes:
                limit = f"at most {max_event_bytes}"
                raise InvalidBatch("payload size", largest, limit)
        if len(self.timestamps) != count:
            raise InvalidBatch("number of timestamps", len(self.timestamps), f"{count}")
        try:
            array("q", self.distinct_timestamps())
        except (TypeError, OverflowError) as error:
            limit = "whole milliseconds within 64 bits"
            raise _unacceptable("timestamp", error, limit) from None
        size = total + _ROW_BYTES * count
        if given := self.given():
            size += _checked_metadata(given, count)
        if size > MAX_BATCH_BYTES:
            raise InvalidBatch("batch size", size, f"at most {MAX_BATCH_BYTES}")
        self.size = size
        return size

    def row_bytes(self) -> list[int]:
        """About how many bytes each event has.

        Alike ones that were checked count for the same: it is a hot path.
        """
        rows = [*map(len, self.payloads)]
        alike = max(rows) <= 2 * min(rows) + _ROW_BYTES
        if alike and self.size and self.keys is None and self.headers is None:
            return [self.size // len(rows)] * len(rows)
        for name, column in self.given().items():
            weigh = _WEIGHTS.get(_FIELD_OF[name].kind)
            if weigh is not None:
                once = weigh(distinct(column))
                more = once if len(once) == len(rows) else repeat(once[0])
                rows = [*map(add, rows, more)]
        return rows

    def distinct_timestamps(self) -> list[int]:
        """The timestamps, or the only one there is: a batch tends to have one."""
        first = self.timestamps[0]
        if self.timestamps.count(first) == len(self.timestamps):
            return [first]
        return self.timestamps


def events_of(
    topic: str, columns: Mapping[str, Sequence[Any] | None], count: int
) -> Iterator[Event]:
    """Rows of columns as events; a column that is None has the default for all."""
    # Any: the values of whichever field.
    names = [field.attribute for field in STORED]
    for row in zip(*event_columns(columns, count), strict=True):
        yield Event(topic=topic, **dict(zip(names, row, strict=True)))


def event_columns(
    columns: Mapping[str, Sequence[Any] | None],
    count: int,
    fields: Iterable[Field] = STORED,
) -> list[Sequence[Any]]:
    """What events have of each of these fields."""
    return [_filled(field, columns.get(field.column), count) for field in fields]


def _filled(field: Field, column: Sequence[Any] | None, count: int) -> Sequence[Any]:
    if field.nullable and field.kind == "time":
        return [None] * count if column is None else [one or None for one in column]
    if column is not None:
        return column
    return [{} for _ in range(count)] if field.kind == "map" else [field.blank] * count


def distinct(values: Sequence[T]) -> Sequence[T]:
    """The values, or the only one there is: a publisher tends to repeat itself."""
    return values[:1] if values.count(values[0]) == len(values) else values


def _checked_metadata(given: Mapping[str, list[Any]], count: int) -> int:
    """Bytes of the optional columns, proven to be encodable."""
    # Any: the values of whichever field.
    size = 0
    for name, column in given.items():
        if len(column) != count:
            raise InvalidBatch(f"number of {name}", len(column), f"{count}")
        field = _FIELD_OF[name]
        what, limit, bytes_of = _CHECKS[field.kind]
        try:
            size += bytes_of(column)
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise _unacceptable(what or name, error, limit or field.limit) from None
    return size


# The bytes of a column by the kind of its field; they raise for what cannot be written.


def _bytes_of_levels(levels: list[int]) -> int:
    return len(bytes(levels))


def _bytes_of_binary(values: list[bytes | None]) -> int:
    return len(b"".join([value for value in values if value is not None]))


def _bytes_of_texts(texts: list[str | None]) -> int:
    once = distinct(texts)
    given = [text for text in once if text is not None]
    return len("".join(given).encode()) * (len(texts) // len(once))


def _bytes_of_maps(headers: list[Headers]) -> int:
    once = distinct(headers)
    values = chain.from_iterable([header.values() for header in once])
    texts = "".join(chain(chain.from_iterable(once), values))
    size = len(texts.encode()) + _ENTRY_BYTES * sum(map(len, once))
    return size * (len(headers) // len(once))


def _bytes_of_times(times: list[int]) -> int:
    once = distinct(times)
    if set(map(type, once)) != {int}:
        raise TypeError("no whole number")
    for time in (min(once), max(once)):
        if not 0 <= time <= MAX_TIME_MS:
            raise ValueError(time)
    return _TIME_BYTES * len(times)


def _unacceptable(field: str, error: Exception, limit: str) -> InvalidBatch:
    return InvalidBatch(field, f"not acceptable ({error})", limit)


# What an error calls the thing, and its limit, where they are not those of the field.
_CHECKS: dict[str, tuple[str, str, Callable[[list[Any]], int]]] = {
    "level": ("priority", "", _bytes_of_levels),
    "bytes": ("key", "", _bytes_of_binary),
    "text": ("", "valid Unicode text or None", _bytes_of_texts),
    "map": ("headers", "", _bytes_of_maps),
    "time": ("", "", _bytes_of_times),
}


# The bytes of each value, of the kinds of which it may be many.


def _each_binary(values: Sequence[bytes | None]) -> list[int]:
    return [0 if value is None else len(value) for value in values]


def _each_text(texts: Sequence[str | None]) -> list[int]:
    if None not in texts and "".join(cast("Sequence[str]", texts)).isascii():
        return [*map(len, cast("Sequence[str]", texts))]
    return [0 if text is None else len(text.encode()) for text in texts]


def _each_map(headers: Sequence[Headers]) -> list[int]:
    return [_bytes_of_maps([header]) for header in headers]


_WEIGHTS: dict[str, Callable[[Sequence[Any]], list[int]]] = {
    # Any: the values of whichever field.
    "bytes": _each_binary,
    "text": _each_text,
    "map": _each_map,
}
