"""``format("penstock")``: topics as tables and streams of Spark."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from penstock.errors import InvalidOption, Unreachable
from penstock.spark import ddl
from penstock.spark.columns import layout_of, schema_of
from penstock.spark.options import SourceOptions, source_options
from penstock.spark.reader import TopicReader
from penstock.spark.registered import columns_of
from penstock.spark.selection import present
from penstock.spark.stream import TopicStreamReader
from penstock.table.place import open_place

if TYPE_CHECKING:
    from penstock.spark.writer import BatchWriter, StreamWriter

REGISTERED = "registered"


class PenstockSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> StructType:
        # Spark does not say yet whether this is to be a stream; what would be wrong
        # then is said then. An end is the only option that a stream does not have.
        options = source_options(self._read_options(), streaming=False)
        return schema_of(
            typed_columns(options),
            options.columns,
            include_headers=options.include_headers,
        )

    def reader(self, schema: StructType) -> TopicReader:
        options = source_options(self.options, streaming=False)
        return TopicReader(options, layout_of(schema, typed_columns(options)))

    def streamReader(self, schema: StructType) -> TopicStreamReader:
        options = source_options(self.options, streaming=True)
        return TopicStreamReader(options, layout_of(schema, typed_columns(options)))

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        from penstock.spark.writer import batch_writer

        return batch_writer(self.options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        # Complete mode says overwrite: as with Kafka all of it is appended each time.
        from penstock.spark.writer import stream_writer

        return stream_writer(self.options, schema)

    def _read_options(self) -> dict[str, str]:
        """Without where to begin: ``latest`` is right for streams, wrong for tables."""
        return {
            name: value
            for name, value in self.options.items()
            if name.lower() != "startingoffsets"
        }


def typed_columns(options: SourceOptions) -> StructType | None:
    """The fields of the payload, if they are wanted as columns.

    Raises InvalidOption, UnknownTopic, ServerRefused (UnknownSchema), Unreachable.
    """
    text = options.value_schema
    if text is None:
        return None
    if text.strip().lower() != REGISTERED:
        return ddl.parse(text)
    with closing(open_place(options.connection)) as place:
        topics = present(place, options)
        try:
            return columns_of(
                {
                    topic: place.ask("schemas.show", topic=topic)["schema"]
                    for topic in topics
                }
            )
        except Unreachable as error:
            limit = f"given as fields, or its broker must run ({error})"
            raise InvalidOption("valueSchema", text, limit) from None
