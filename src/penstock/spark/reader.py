"""A topic as a table: what there is of it now, or between two places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition

from penstock.errors import DataLost
from penstock.spark.filters import PushedFilters
from penstock.spark.options import SourceOptions
from penstock.spark.ranges import TaskRange, split
from penstock.spark.selection import placed, present
from penstock.table.columns import Builder, QueryColumns
from penstock.table.extent import Extent, is_another
from penstock.table.place import Place, all_that_is_left, open_place

if TYPE_CHECKING:
    import pyarrow as pa

MADE_AGAIN = "it was deleted and made again, its offsets mean other events now"


class _Pushdown:
    """``pushFilters``, hidden from a check that Spark makes.

    Spark refuses to run a reader that has its own where the session says
    ``spark.sql.python.filterPushdown.enabled=false``, which is the default. Nothing is
    wrong then, only nothing is pushed: so this looks like what it inherits.

    Nor is anything left out unless the option ``pushdown`` says so. Spark keeps what
    was planned for one condition with the table, not with the query: without a
    condition, or in a join with itself, the table would be read as for another query.
    """

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, reader: TopicReader) -> None:
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._reader.push(filters)


class TopicReader(DataSourceReader):
    def __init__(self, options: SourceOptions, layout: QueryColumns) -> None:
        self._options = options
        self._layout = layout
        self.wanted = PushedFilters.of(layout)

    @property
    def pushFilters(self) -> Any:
        return _Pushdown(self)

    def push(self, filters: list[Filter]) -> list[Filter]:
        """Take note of filters; those that Spark must look at."""
        return self.wanted.push(filters) if self._options.pushdown else filters

    def partitions(self) -> list[InputPartition]:
        options = self._options
        with closing(open_place(options.connection)) as place:
            extents = present(place, options)
            fail = options.fail_on_data_loss
            starts = placed(place, options.starting, extents, fail_on_data_loss=fail)
            ends = placed(place, options.ending, extents, fail_on_data_loss=fail)
            spans = {
                topic: self._span(
                    place,
                    topic,
                    Extent(start=start, end=max(ends[topic], start)),
                )
                for topic, start in starts.items()
            }
        return [
            *split(
                spans,
                extents,
                at_least=options.min_partitions,
                most_records=options.max_records_per_partition,
            )
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark makes up a partition without a value where there are none.
        if isinstance(partition, TaskRange):
            yield from record_batches(
                self._options, self._layout, partition, self.wanted
            )

    def _span(self, place: Place, topic: str, extent: Extent) -> tuple[int, int]:
        start, end = self.wanted.span(topic, extent)
        if start < end and self.wanted.since_ms > 0:
            start = max(start, place.offset_at(topic, self.wanted.since_ms))
        return start, max(start, end)


def record_batches(
    options: SourceOptions,
    layout: QueryColumns,
    part: TaskRange,
    wanted: PushedFilters | None = None,
) -> Iterator[pa.RecordBatch]:
    """What one task reads, where it reads it: files and sockets are opened here."""
    with closing(open_place(options.connection)) as place:
        extent = place.extents([part.topic]).get(part.topic)
        if extent is not None and is_another(part.number, extent):
            if options.fail_on_data_loss:
                raise DataLost(part.topic, MADE_AGAIN)
            return
        if options.fail_on_data_loss:
            batches = place.batches(part.topic, part.start, part.end)
        else:
            batches = all_that_is_left(place, part.topic, part.start, part.end)
        if wanted is not None:
            batches = filter(wanted.has, batches)
        yield from Builder(layout, part.topic).record_batches(batches)
