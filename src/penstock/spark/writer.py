"""The sink as Spark calls it: for batches and for streams, over Arrow.

Spark makes a writer in one process, runs ``write`` on copies of it in the tasks, and
``commit`` or ``abort`` on another copy, or, of a stream, on a new writer. So all that
the commit needs to know comes with the messages of the tasks. Spark calls ``abort``
also after a commit that failed half-way, and with None for messages that never came.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from penstock.errors import InvalidOption, UnfitFrame
from penstock.spark.rows import RowLayout
from penstock.spark.sink import Sink, SinkOptions, TaskResult, Write, sink_options

logger = logging.getLogger(__name__)

# Queries of Spark, among those of others that write.
PREFIX = "spark:"
_QUERY = "sql.streaming.queryId"
_EPOCH = "streaming.sql.batchId"


@dataclass
class Written(WriterCommitMessage):
    """What a task says of its part."""

    write: Write
    part: TaskResult


CommitMessages = Sequence[WriterCommitMessage | None]


def batch_writer(
    options: Mapping[str, str], schema: StructType, *, overwrite: bool
) -> BatchWriter:
    """Raises UnknownOption, MissingOption, InvalidOption, UnfitFrame, InvalidName."""
    return BatchWriter(sink_options(options), schema, overwrite=overwrite)


def stream_writer(options: Mapping[str, str], schema: StructType) -> StreamWriter:
    """Raises UnknownOption, MissingOption, InvalidOption, UnfitFrame, InvalidName."""
    return StreamWriter(sink_options(options), schema)


class BatchWriter(DataSourceArrowWriter):
    """All rows of a DataFrame, or none; or, if not atomic, one after the other."""

    def __init__(
        self, options: SinkOptions, schema: StructType, *, overwrite: bool
    ) -> None:
        if overwrite:
            reason = "would be overwritten: topics are appended to, use mode append"
            raise UnfitFrame("topic", reason)
        self._sink = Sink(options, frame_of(schema, options))
        self._atomic = options.atomic
        name = options.app or f"write:{uuid.uuid4()}"
        version = options.version or 0
        self._write = Write(PREFIX + name, version, last=options.app is None)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = _context()
        put = self._sink.stage if self._atomic else self._sink.publish
        return Written(self._write, put(self._write, context.partitionId(), iterator))

    def commit(self, messages: CommitMessages) -> None:
        if self._atomic:
            self._sink.commit(self._write, _parts(messages))

    def abort(self, messages: CommitMessages) -> None:
        if self._atomic:
            self._sink.abort(self._write)


class StreamWriter(DataSourceStreamArrowWriter):
    """The rows of every micro-batch, all of them at once, and once."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        if not options.atomic:
            raise InvalidOption("atomic", "false", "true for a stream")
        if options.app is not None:
            limit = "left out: a stream has a name and numbers of its own"
            raise InvalidOption("txnAppId", options.app, limit)
        self._sink = Sink(options, frame_of(schema, options))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        context = _context()
        query, epoch = map(context.getLocalProperty, (_QUERY, _EPOCH))
        assert query and epoch, "Spark tells the tasks of a stream"
        write = Write(PREFIX + query, int(epoch))
        return Written(write, self._sink.stage(write, context.partitionId(), iterator))

    def commit(self, messages: CommitMessages, batchId: int) -> None:
        for write in _writes(messages):
            if not self._sink.commit(write, _parts(messages)):
                _note_before(write)

    def abort(self, messages: CommitMessages, batchId: int) -> None:
        for write in _writes(messages):
            self._sink.abort(write)


def frame_of(schema: StructType, options: SinkOptions) -> RowLayout:
    """What is written of rows of this schema; raises UnfitFrame, InvalidName."""
    columns = [(field.name, field.dataType.simpleString()) for field in schema.fields]
    return RowLayout.of(columns, options.topic)


def _note_before(write: Write) -> None:
    """As it should be after a crash; not if the query was given another topic."""
    logger.warning(
        "epoch %d of %s was stored before: nothing of it is stored now",
        write.epoch,
        write.query,
        extra={"action": "epoch_stored_before", "query": write.query},
    )


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "write() runs in tasks"
    return context


def _parts(messages: CommitMessages) -> list[TaskResult]:
    return [one.part for one in messages if isinstance(one, Written)]


def _writes(messages: CommitMessages) -> set[Write]:
    """The write that the messages are of; none if no task has got anywhere."""
    return {one.write for one in messages if isinstance(one, Written)}
