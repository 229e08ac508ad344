"""What a condition says about topics, offsets and times before anything is read.

Topics and offsets are cut exactly, so Spark need not look again. Times are not in order
within a topic: a time says where to begin and which frames to leave out, and Spark
looks at what is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import datasource as spark

from penstock.log import Batch
from penstock.table.columns import QueryColumns
from penstock.table.extent import Extent
from penstock.table.naming import NEVER_NULL

_FIRST = -(1 << 63)
_LAST = (1 << 63) - 1
_MILLISECOND = timedelta(milliseconds=1)


@dataclass
class PushedFilters:
    """Events that can fulfil the conditions seen so far."""

    topics: set[str] | None = None
    start: int = 0
    end: int = _LAST
    since_ms: int = _FIRST
    until_ms: int = _LAST
    """The last millisecond that is wanted."""
    _columns: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, layout: QueryColumns) -> PushedFilters:
        names = {name: layout.name_of(name) for name in NEVER_NULL}
        return cls(_columns={said: own for own, said in names.items() if said})

    def push(self, filters: Iterable[spark.Filter]) -> list[spark.Filter]:
        """Take note of conditions that are all to hold; those Spark must look at."""
        return [one for one in filters if not self._took(one)]

    def span(self, topic: str, extent: Extent) -> tuple[int, int]:
        """The part of a topic that is wanted; times are not looked at."""
        if self.topics is not None and topic not in self.topics:
            return extent.start, extent.start
        start = min(max(self.start, extent.start), extent.end)
        return start, max(min(self.end, extent.end), start)

    def has(self, batch: Batch) -> bool:
        """Whether the batch may hold an event of a wanted time."""
        header = batch.header
        late_enough = header.max_timestamp_ms >= self.since_ms
        return late_enough and header.min_timestamp_ms <= self.until_ms

    def _took(self, one: spark.Filter) -> bool:
        """Note a condition; True if it holds for everything that will be read."""
        path: tuple[str, ...] = getattr(one, "attribute", ())
        own = self._columns.get(path[0]) if len(path) == 1 else None
        if own is None:
            return False
        if isinstance(one, spark.IsNotNull):
            return True
        value = getattr(one, "value", None)
        if own == "topic":
            return self._took_topic(one, value)
        if own == "offset":
            return self._took_offset(one, value)
        if own == "timestamp":
            self._note_time(one, value)
        return False

    def _took_topic(self, one: spark.Filter, value: Any) -> bool:
        if isinstance(one, spark.EqualTo):
            names = {value}
        elif isinstance(one, spark.In):
            names = set(value)
        else:
            return False
        self.topics = names if self.topics is None else self.topics & names
        return True

    def _took_offset(self, one: spark.Filter, value: Any) -> bool:
        if isinstance(one, spark.In):
            numbers = [number for number in value if isinstance(number, int)]
            self._note_offsets(min(numbers, default=0), max(numbers, default=-1) + 1)
            return False
        if not isinstance(value, int):
            return False
        match one:
            case spark.EqualTo():
                self._note_offsets(value, value + 1)
            case spark.GreaterThan():
                self._note_offsets(value + 1, _LAST)
            case spark.GreaterThanOrEqual():
                self._note_offsets(value, _LAST)
            case spark.LessThan():
                self._note_offsets(0, value)
            case spark.LessThanOrEqual():
                self._note_offsets(0, value + 1)
            case _:
                return False
        return True

    def _note_offsets(self, start: int, end: int) -> None:
        self.start, self.end = max(self.start, start), min(self.end, end)

    def _note_time(self, one: spark.Filter, value: Any) -> None:
        if not isinstance(value, datetime):
            return
        # Events have whole milliseconds: rounding down takes in what is between.
        moment_ms = _milliseconds(value)
        if isinstance(
            one, spark.EqualTo | spark.GreaterThan | spark.GreaterThanOrEqual
        ):
            self.since_ms = max(self.since_ms, moment_ms)
        if isinstance(one, spark.EqualTo | spark.LessThan | spark.LessThanOrEqual):
            self.until_ms = min(self.until_ms, moment_ms)


def _milliseconds(moment: datetime) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    return (moment - epoch) // _MILLISECOND
