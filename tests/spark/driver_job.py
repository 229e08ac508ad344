"""A program that copies one topic to another in small batches, until it is killed.

driver_job.py SERVERS CHECKPOINT MARKER [before|after EPOCH]

``before`` and ``after``: the commit of that epoch makes the file MARKER and hangs, when
all is staged and nothing stored, or when all is stored and Spark has not noted it.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from pyspark.sql.types import StructType

from penstock.spark import session
from penstock.spark.sessions import defaults
from penstock.spark.sink import sink_options
from penstock.spark.source import PenstockSource
from penstock.spark.writer import CommitMessages, StreamWriter

LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
HANG_S = 120.0
BATCH = 500


def hanging(when: str, epoch: int, marker: str) -> type[PenstockSource]:
    """A format whose commit of one epoch never ends."""

    # Inside, so that they travel with all they are made of.
    class HangingWriter(StreamWriter):
        def commit(self, messages: CommitMessages, batchId: int) -> None:
            hangs = batchId == epoch
            if not hangs or when == "after":
                StreamWriter.commit(self, messages, batchId)
            if hangs:
                Path(marker).touch()
                parent, end_s = os.getppid(), time.monotonic() + HANG_S
                while os.getppid() == parent and time.monotonic() < end_s:
                    time.sleep(0.02)
                os._exit(1)

    class HangingSource(PenstockSource):
        @classmethod
        def name(cls) -> str:
            return "hanging"

        def streamWriter(self, schema: StructType, overwrite: bool) -> HangingWriter:
            return HangingWriter(sink_options(self.options), schema)

    return HangingSource


def main(servers: str, checkpoint: str, marker: str, *fault: str) -> None:
    usual = defaults("local")["spark.driver.extraJavaOptions"]
    options = f"{usual} {LIGHT}"
    spark = session("local[2]", **{"spark.driver.extraJavaOptions": options})
    form = "penstock"
    if fault:
        when, epoch = fault
        source = hanging(when, int(epoch), marker)
        spark.dataSource.register(source)
        form = source.name()
    reader = spark.readStream.format("penstock").options(
        servers=servers,
        subscribe="in",
        startingOffsets="earliest",
        maxOffsetsPerTrigger=BATCH,
        minPartitions=2,
    )
    writer = reader.load().writeStream.format(form).trigger(availableNow=True)
    query = writer.options(
        servers=servers, topic="out", checkpointLocation=checkpoint
    ).start()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
