"""A program for a cluster: one topic to another, in small batches.

cluster_job.py MASTER SERVERS CHECKPOINT
"""

from __future__ import annotations

import sys

from penstock.spark import session
from penstock.spark.sessions import LIGHT


def main(master: str, servers: str, checkpoint: str) -> None:
    spark = session(
        master,
        **{
            "spark.driver.host": "127.0.0.1",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": LIGHT,
            "spark.executor.memory": "512m",
        },
    )
    reader = spark.readStream.format("penstock").options(
        servers=servers,
        subscribe="in",
        startingOffsets="earliest",
        maxOffsetsPerTrigger=2000,
        minPartitions=2,
    )
    writer = reader.load().writeStream.format("penstock").trigger(availableNow=True)
    query = writer.options(
        servers=servers, topic="out", checkpointLocation=checkpoint
    ).start()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
