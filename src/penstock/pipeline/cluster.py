"""The pipeline on a cluster: into how many parts its work is cut.

Tasks are to be as many as the cluster has cores for. Spark knows of executors as they
come, and the query fixes both numbers when it starts: so they are waited for.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from penstock.spark.sessions import LIGHT

logger = logging.getLogger(__name__)

# Batches are short, and plans narrow: the better compiler does not pay, in executors
# neither.
SETTINGS = {"spark.executor.extraJavaOptions": LIGHT}
PARALLELISM = "spark.default.parallelism"
STATES = "spark.sql.shuffle.partitions"
# Parts of the state stay as many as they were in the first batch, and the cluster may
# grow. 200 would be Spark's choice: for each of them files are written, every batch.
FEWEST_STATES = 4
# As long as more executors come within this time, they are waited for.
SETTLE_S = 1.0
# A cluster without room is waited for by Spark itself, which says nothing.
PATIENCE_S = 30.0
LOOK_S = 0.1

PauseFor = Callable[[float], bool]


def settle(spark: SparkSession, given: Mapping[str, str], pause: PauseFor) -> None:
    """Wait for executors, and cut the state into as many parts as they have cores.

    What is given stays as it is, and is not waited for. ``pause`` waits, and says
    whether to end.
    """
    if PARALLELISM not in given:
        _wait(spark, pause)
    if STATES not in given:
        cores = spark.sparkContext.defaultParallelism
        spark.conf.set(STATES, max(cores, FEWEST_STATES))


def _wait(spark: SparkSession, pause: PauseFor) -> None:
    began_s = changed_s = now_s = time.monotonic()
    there = 0
    while not there or now_s - changed_s < SETTLE_S:
        if pause(LOOK_S):
            return
        now_s = time.monotonic()
        found = executors(spark)
        if found != there:
            there, changed_s = found, now_s
        if now_s - began_s >= PATIENCE_S:
            break
    if not there:
        logger.warning(
            "no executor of %s after %g s: Spark waits until a worker has the cores "
            "and the memory that one of them asks for",
            *(spark.sparkContext.master, PATIENCE_S),
            extra={"action": "no_executors"},
        )


def executors(spark: SparkSession) -> int:
    """How many there are now."""
    context = spark.sparkContext._jsc.sc()
    with_driver: int = context.getExecutorMemoryStatus().size()
    return with_driver - 1
