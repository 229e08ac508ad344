"""Statistics of the pipeline itself: percentiles and counts of windows of 5 seconds.

The samples are events of the topic ``pipeline_samples``. A window is that of the time
at which the broker stored the sample, which goes on in a topic, so that no sample comes
too late to be counted, whoever wrote it and however long it was on its way.

A window is told when a later sample shows that it is over. Samples of kind ``tick`` say
nothing but that: they are written when nothing else is.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    array,
    ceil,
    coalesce,
    col,
    concat,
    count,
    lit,
    max,
    percentile,
    struct,
    sum,
    to_json,
    unix_millis,
    when,
    window,
)

from penstock.pipeline.documents import AS_IT_IS

SAMPLE = "kind STRING, ms DOUBLE, count BIGINT"
WINDOW = "5 seconds"
# How far the clock of a broker may be set back.
WATERMARK = "2 seconds"
PERCENTILES = (75, 85, 95)
# Who tells it, in the text.
WORKER = "StatisticWorker spark"
# Kinds of samples, and the topic that their statistics go to; of others there are none.
TOPICS = {
    "processing": "logger_stats",
    "panics": "logger_stats",
    "tweets": "tweets_stats",
    "users": "users_stats",
}
KINDS = {
    "logger_stats": "processing",
    "tweets_stats": "tweets",
    "users_stats": "users",
}


def statistics(samples: DataFrame) -> DataFrame:
    """Rows of ``topic`` and ``value``, one for each window and topic with samples.

    ``samples`` has the columns ``kind``, ``ms``, ``count`` and ``timestamp``.
    """
    topic = _of("kind", TOPICS)
    ranks = array(*(lit(one / 100) for one in PERCENTILES))
    panics = when(col("kind") == "panics", col("count")).otherwise(0)
    windows = (
        samples.withWatermark("timestamp", WATERMARK)
        .groupBy(window("timestamp", WINDOW), topic.alias("topic"))
        .agg(
            percentile("ms", ranks).alias("ranks"),
            count("ms").alias("times"),
            max("ms").alias("longest"),
            sum(panics).alias("crashes"),
            sum("count").alias("processed"),
            # Not a condition on the topic: Spark would have it looked at in front of
            # the watermark, which then knows nothing of ticks.
            count(topic).alias("samples"),
        )
    )
    told = windows.where(col("samples") > 0)
    for place, one in enumerate(PERCENTILES):
        told = told.withColumn(f"p{one}", _rounded(col("ranks")[place]))
    return told.select("topic", _value().alias("value"))


def _rounded(value: Column) -> Column:
    """Up to two decimals; a single sample is told as it is.

    In decimals: 1.1 is a little more than that in binary, and would be rounded to 1.11.
    """
    up = ceil(value.cast("decimal(38,12)"), lit(2)).cast("double")
    return when(col("times") == 1, col("longest")).otherwise(up)


def _value() -> Column:
    text = concat(*(_percentiles()))
    logger = concat(
        lit(f"[{WORKER} - LoggerWorker execution time] Percentile stats "),
        *(text, lit(" ["), col("crashes"), lit(" CRASHES/5sec]")),
    )
    bulk = concat(
        *(lit(f"[{WORKER} - Bulk `"), _of("topic", KINDS), lit("` insert stats] ")),
        *(lit("Execution time percentile "), text),
        *(lit(" [processed="), col("processed"), lit("]")),
    )
    is_logger = col("topic") == TOPICS["processing"]
    return when(is_logger, _told("crashes", logger)).otherwise(_told("processed", bulk))


def _told(total: str, text: Column) -> Column:
    return to_json(
        struct(
            _of("topic", KINDS).alias("kind"),
            unix_millis("window.start").alias("window_start_ms"),
            unix_millis("window.end").alias("window_end_ms"),
            *(col(f"p{one}") for one in PERCENTILES),
            col(total),
            text.alias("text"),
        ),
        AS_IT_IS,
    )


def _percentiles() -> Iterator[Column]:
    for place, one in enumerate(PERCENTILES):
        yield lit(f"{' | ' if place else ''}{one}%=")
        yield coalesce(col(f"p{one}").cast("string"), lit("-"))


def _of(column: str, names: dict[str, str]) -> Column:
    found = lit(None).cast("string")
    for one, name in names.items():
        found = when(col(column) == one, lit(name)).otherwise(found)
    return found
