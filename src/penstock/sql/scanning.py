"""A topic as DuckDB reads it: the columns that it asks for, from where it has to.

DuckDB scans what it takes for a dataset of Arrow as often as it likes, and tells which
columns it wants and under which condition. The condition has to be fulfilled here:
DuckDB does not look again.

DuckDB hands a condition over as an expression of Arrow, which cannot be taken apart,
but which Arrow simplifies by what is known of a file. So made-up files are shown to it,
of which it is known that offsets, or times, lie between two numbers: those that it
passes over hold nothing that is wanted. By halving, the bounds are found in some tens
of steps, however the condition is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs

from penstock.errors import PenstockError
from penstock.log import Batch
from penstock.model.event import FIELDS, Kind
from penstock.table.columns import Builder, QueryColumns
from penstock.table.connection import BrokerAccess
from penstock.table.extent import Extent
from penstock.table.naming import CORRUPT, view
from penstock.table.place import Place, open_place

# Halves that are looked at: enough for the bounds of 2^63 numbers.
STEPS = 200

_format = ds.IpcFileFormat()
_nowhere = pyarrow.fs.LocalFileSystem()


def bounds(
    condition: ds.Expression,
    schema: pa.Schema,
    column: str,
    lowest: int,
    behind: int,
    scalar: Callable[[int], pa.Scalar],
) -> tuple[int, int]:
    """From where to where in front of ``behind`` a column may fulfil a condition.

    ``scalar`` is a number as a value of the column. Both are equal if nothing does.
    """

    def may_be(low: int, high: int) -> bool:
        field = pc.field(column)
        known = (field >= scalar(low)) & (field <= scalar(high - 1))
        return _is_possible(condition, known, schema)

    if lowest >= behind or not may_be(lowest, behind):
        return lowest, lowest
    return _first(may_be, lowest, behind), _last(may_be, lowest, behind)


def _first(may_be: Callable[[int, int], bool], low: int, high: int) -> int:
    """The lowest number that may be, of some that may."""
    steps = STEPS
    while high - low > 1 and (steps := steps - 1):
        middle = (low + high) // 2
        if may_be(low, middle):
            high = middle
        else:
            low = middle
    return low


def _last(may_be: Callable[[int, int], bool], low: int, high: int) -> int:
    """The number behind the highest that may be."""
    steps = STEPS
    while high - low > 1 and (steps := steps - 1):
        middle = (low + high) // 2
        if may_be(middle, high):
            low = middle
        else:
            high = middle
    return high


def _is_possible(
    condition: ds.Expression, known: ds.Expression, schema: pa.Schema
) -> bool:
    fragment = _format.make_fragment(
        "/nowhere", filesystem=_nowhere, partition_expression=known
    )
    files = ds.FileSystemDataset([fragment], schema, _format, _nowhere)
    return any(True for _ in files.get_fragments(filter=condition))


# Events of one record batch, and bytes of their frames: DuckDB likes them larger than
# Spark does.
CHUNK_ROWS = 1 << 16
CHUNK_BYTES = 16 << 20
# The last time there is, in milliseconds.
MOST_MS = 1 << 53

_TIME = pa.timestamp("us", "UTC")
# Bytes are text here; what is none is shown with U+FFFD.
_KINDS: dict[Kind, pa.DataType] = {
    "offset": pa.int64(),
    "time": _TIME,
    "bytes": pa.string(),
    "level": pa.int32(),
    "text": pa.string(),
    "map": pa.map_(pa.string(), pa.string()),
}
_TYPES: dict[str, pa.DataType] = {
    **{one.table: _KINDS[one.kind] for one in FIELDS},
    "partition": pa.int32(),
    "timestampType": pa.int32(),
    CORRUPT: pa.string(),
}


@dataclass(slots=True)
class Misfits:
    """Payloads whose fields were asked for, and that do not have them."""

    topic: str
    count: int = 0


class TopicTable(ds.InMemoryDataset):  # type: ignore[misc]  # it has no types
    """Registered with DuckDB; ``typed`` are the fields that a schema promises."""

    def __init__(
        self,
        connection: BrokerAccess,
        topic: str,
        extent: Extent,
        typed: pa.Schema | None = None,
    ) -> None:
        self._connection = connection
        self._extent = extent
        self._topic = topic
        self._typed = typed
        self._own = view([] if typed is None else typed.names)
        types = {} if typed is None else {one.name: one.type for one in typed}
        self._fields = {
            name: pa.field(name, types[name] if own is None else _TYPES[own])
            for name, own in self._own.items()
        }
        self.misfits = Misfits(topic)
        self.error: PenstockError | None = None
        """What has ended a scan, if something did."""
        super().__init__(pa.schema(list(self._fields.values())).empty_table())

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: ds.Expression | None = None,
        **_: object,
    ) -> Scan:
        """Called by DuckDB."""
        wanted = list(self._fields) if columns is None else list(columns)
        return Scan(self, wanted, filter)

    def layout(self, columns: Sequence[str]) -> QueryColumns:
        schema = pa.schema([self._fields[name] for name in columns])
        return QueryColumns(
            schema, tuple(self._own[name] for name in columns), self._typed
        )

    def read(
        self, columns: Sequence[str], condition: ds.Expression | None
    ) -> Iterator[pa.RecordBatch]:
        read = [*columns, *self._only_asked(columns, condition)]
        layout = self.layout(read)
        builder = Builder(
            layout, self._topic, chunk_rows=CHUNK_ROWS, chunk_bytes=CHUNK_BYTES
        )
        try:
            with closing(open_place(self._connection)) as place:
                for batch in builder.record_batches(self._frames(place, condition)):
                    found = batch if condition is None else batch.filter(condition)
                    yield found.select(list(columns))
        except PenstockError as error:
            self.error = error
            raise
        finally:
            self.misfits.count += builder.misfits

    def _only_asked(
        self, columns: Sequence[str], condition: ds.Expression | None
    ) -> list[str]:
        """Columns that stand in the condition alone."""
        if condition is None:
            return []
        return [
            name
            for name in self._fields
            if name not in columns and self._stands_in(name, condition)
        ]

    def _stands_in(self, column: str, condition: ds.Expression) -> bool:
        others = [field for name, field in self._fields.items() if name != column]
        try:
            pa.schema(others).empty_table().filter(condition)
        except pa.ArrowInvalid:
            return True
        return False

    def _frames(self, place: Place, condition: ds.Expression | None) -> Iterator[Batch]:
        """The frames in which there may be events that are wanted."""
        start, end = self._extent.start, self._extent.end
        if condition is None:
            yield from place.batches(self._topic, start, end)
            return
        schema = pa.schema(list(self._fields.values()))
        name = self._name("offset")
        start, end = bounds(condition, schema, name, start, end, pa.scalar)
        name = self._name("timestamp")
        since, until = bounds(condition, schema, name, 0, MOST_MS, _moment)
        if since >= until or start >= end:
            return
        if since > 0:
            start = max(start, place.offset_at(self._topic, since))
        for batch in place.batches(self._topic, start, end) if start < end else ():
            header = batch.header
            if header.max_timestamp_ms >= since and header.min_timestamp_ms < until:
                yield batch

    def _name(self, own: str) -> str:
        """What a column of the event is called here."""
        return next(name for name, what in self._own.items() if what == own)


@dataclass(frozen=True, slots=True)
class Scan:
    """One look at a topic, as far as DuckDB asks for it."""

    table: TopicTable
    columns: list[str]
    condition: ds.Expression | None

    @property
    def projected_schema(self) -> pa.Schema:
        return self.table.layout(self.columns).schema

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(
            self.projected_schema, self.table.read(self.columns, self.condition)
        )


def _moment(ms: int) -> pa.Scalar:
    return pa.scalar(ms * 1000, pa.int64()).cast(_TIME)
