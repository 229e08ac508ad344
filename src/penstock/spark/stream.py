"""A topic as a stream: micro-batches, each a range of offsets of each topic.

The reader lives in a process beside the driver, which asks where batches end; copies of
it read in the executors. Only offsets are remembered, and Spark's checkpoint has them.

The broker is told where a query stands, so that its lag is seen like any other's. What
was handled is where the next batch begins: Spark's own word for it comes one batch
late, and not at all while nothing happens.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from penstock.errors import (
    DataLost,
    InvalidName,
    LoginRefused,
    NotMoved,
    PenstockError,
    ReservedName,
    ServerRefused,
    Unreachable,
)
from penstock.spark.offsets import StreamOffset, plain
from penstock.spark.options import SourceOptions
from penstock.spark.ranges import TaskRange, share, split
from penstock.spark.reader import MADE_AGAIN, record_batches
from penstock.spark.selection import is_selected, placed, present, selected
from penstock.table.columns import QueryColumns
from penstock.table.extent import Extent, is_another
from penstock.table.place import Place, RunningBroker, open_place

if TYPE_CHECKING:
    import pyarrow as pa


# A report is synced to disk: a query in a hurry makes one that often.
INTERVAL_S = 0.5
# A broker that files are read without is looked for again after this.
AWAY_S = 5.0
# The user has to choose another name.
FATAL = (NotMoved, InvalidName, ReservedName, LoginRefused)


class ProgressReporter:
    """Reports under a subscriber's name; an empty one reports nothing."""

    def __init__(self, name: str, *, needs_broker: bool) -> None:
        self._name = name
        self._needs_broker = needs_broker
        self._said: dict[str, int] = {}
        self._due_s = 0.0
        self._away_s = 0.0

    def report(self, place: Place, topics: Mapping[str, int], *, now: bool) -> None:
        """Say where the query stands, if that is new; ``now``: however short ago.

        Raises ServerRefused if the name is not for it.
        """
        news = {t: at for t, at in topics.items() if self._said.get(t) != at}
        now_s = time.monotonic()
        if not self._name or not news or now_s < self._away_s:
            return
        if not now and now_s < self._due_s:
            return
        self._due_s = now_s + INTERVAL_S
        for topic, offset in news.items():
            if not self._report(place, topic, offset):
                self._away_s = now_s + AWAY_S
                return
            self._said[topic] = offset

    def _report(self, place: Place, topic: str, offset: int) -> bool:
        try:
            place.ask(
                "subscriptions.progress",
                subscriber=self._name,
                topic=topic,
                offset=offset,
            )
        except FATAL:
            raise
        except ServerRefused as error:
            logger.warning(
                "progress of %s in %s is not reported: %s",
                self._name,
                topic,
                error,
                extra={"action": "progress_not_reported", "topic": topic},
            )
        except Unreachable:
            if self._needs_broker:
                raise
            return False  # files can be read without their broker
        return True


logger = logging.getLogger(__name__)

OffsetDocument = dict[str, Any]


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, options: SourceOptions, layout: QueryColumns) -> None:
        self._options = options
        self._layout = layout
        self._place: Place | None = None
        self._progress: ProgressReporter | None = None
        self._first: OffsetDocument | None = None
        self._extents: dict[str, Extent] = {}
        self._targets: dict[str, int] | None = None
        self._stands: dict[str, int] = {}

    def __getstate__(self) -> dict[str, Any]:
        """What travels: nothing that is open or remembered."""
        return {"options": self._options, "layout": self._layout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    # Where batches begin and end

    def initialOffset(self) -> OffsetDocument:
        # Spark asks more than once, and means the same place.
        if self._first is None:
            options = self._options
            self._extents = present(self._opened(), options)
            offsets = placed(
                self._opened(),
                options.starting,
                self._extents,
                fail_on_data_loss=options.fail_on_data_loss,
            )
            query = uuid4().hex[:12]
            numbers = self._numbers(offsets)
            first = StreamOffset(
                topics=offsets, query=query, numbers=numbers, initial=True
            )
            self._first = first.document()
        return self._first

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: OffsetDocument, limit: ReadLimit) -> OffsetDocument:
        stands = StreamOffset.of(start)
        ends = self._ends(stands.topics)
        starts = self._checked(stands, ends)
        lags = {topic: max(ends[topic] - at, 0) for topic, at in starts.items()}
        if isinstance(limit, ReadMaxRows):
            lags = share(lags, limit.max_rows)
        topics = {topic: offset + lags[topic] for topic, offset in starts.items()}
        begins = {
            topic: offset
            for topic, offset in starts.items()
            if stands.initial or stands.topics.get(topic) != offset
        }
        numbers = self._numbers(topics)
        idle = topics == starts == stands.topics and numbers == stands.numbers
        self._report(stands, idle=idle)
        if idle:
            return start
        end = StreamOffset(
            topics=topics,
            query=stands.query,
            numbers=numbers,
            begins=begins,
        )
        return end.document()

    def reportLatestOffset(self) -> OffsetDocument | None:
        return plain({topic: one.end for topic, one in self._extents.items()})

    def prepareForTriggerAvailableNow(self) -> None:
        extents = selected(self._opened(), self._options.topics)
        self._targets = {topic: extent.end for topic, extent in extents.items()}

    # One batch

    def partitions(
        self, start: OffsetDocument, end: OffsetDocument
    ) -> list[InputPartition]:
        if start == end:
            return []
        behind = StreamOffset.of(end)
        begins = {**StreamOffset.of(start).topics, **behind.begins}
        extents = self._known(behind.topics)
        spans = {
            topic: (begins[topic], at)
            for topic, at in behind.topics.items()
            if begins[topic] < at and self._is_same(topic, behind, extents)
        }
        return [
            *split(
                spans,
                extents,
                at_least=self._options.min_partitions,
                most_records=self._options.max_records_per_partition,
            )
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, TaskRange), "what partitions() gave"
        return record_batches(self._options, self._layout, partition)

    def commit(self, end: OffsetDocument) -> None:
        pass  # too late to be of use: see ProgressReporter

    def stop(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            place.close()
        if self._progress is None:
            return
        # A query that stops does not wait for a broker that is away.
        connection = replace(self._options.connection, retry_s=0)
        try:
            with closing(RunningBroker(connection)) as broker:
                self._progress.report(broker, self._stands, now=True)
        except PenstockError as error:
            logger.warning(
                "the last progress is not reported: %s",
                error,
                extra={"action": "progress_not_reported"},
            )

    def _opened(self) -> Place:
        if self._place is None:
            self._place = open_place(self._options.connection)
        return self._place

    def _ends(self, stands: Mapping[str, int]) -> dict[str, int]:
        """Where each topic ends now, or ended when everything there was is wanted."""
        self._extents = selected(self._opened(), self._options.topics)
        ends = {topic: extent.end for topic, extent in self._extents.items()}
        if self._targets is None:
            return ends
        # Nothing that came later; a query may stand further than where it began.
        return {
            topic: min(end, max(self._targets.get(topic, 0), stands.get(topic, 0)))
            for topic, end in ends.items()
            if topic in self._targets or topic in stands
        }

    def _numbers(self, topics: Mapping[str, int]) -> dict[str, int]:
        """Those of the topics as they were last looked at."""
        return {topic: self._extents[topic].number for topic in topics}

    def _known(self, topics: Mapping[str, int]) -> dict[str, Extent]:
        """The topics as they were last looked at, which a new process has not done."""
        if topics.keys() - self._extents.keys():
            self._extents |= self._opened().extents([*topics])
        return self._extents

    def _is_same(
        self, topic: str, offset: StreamOffset, extents: Mapping[str, Extent]
    ) -> bool:
        """Whether a topic is the one that is meant; raises DataLost if it is not."""
        extent = extents.get(topic)
        if extent is None:
            return True  # its reader will say that it is gone
        if is_another(offset.numbers.get(topic, 0), extent):
            self._lost(topic, MADE_AGAIN)
            return False
        return True

    def _checked(self, stands: StreamOffset, ends: Mapping[str, int]) -> dict[str, int]:
        """Where each topic goes on; raises DataLost, or goes on where it can."""
        starts = {}
        for topic in stands.topics.keys() - ends.keys():
            self._lost(topic, self._why_gone(topic))
        for topic in ends:
            extent = self._extents[topic]
            start = stands.topics.get(topic, extent.start)
            if not self._is_same(topic, stands, self._extents):
                start = extent.start
            elif not extent.start <= start <= extent.end:
                there = f"it has {extent.start} to {extent.end}"
                self._lost(topic, f"offset {start} is not there any more, {there}")
                start = extent.start
            starts[topic] = start
        return starts

    def _why_gone(self, topic: str) -> str:
        if is_selected(topic, self._options.topics):
            return "it was deleted"
        return "the query has begun with it, and it is not among its topics any more"

    def _lost(self, topic: str, reason: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLost(topic, reason)
        logger.warning(
            "topic %s: %s, going on without",
            topic,
            reason,
            extra={"action": "data_lost", "topic": topic},
        )

    def _report(self, stands: StreamOffset, *, idle: bool) -> None:
        if self._progress is None:
            name = self._options.progress
            self._progress = ProgressReporter(
                f"spark:{stands.query}" if name is None else name,
                needs_broker=self._options.connection.path is None,
            )
        self._stands = dict(stands.topics)
        self._progress.report(self._opened(), self._stands, now=idle)
