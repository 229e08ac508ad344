"""JSON payloads counted by window: decoded by the reader, or by ``from_json``."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, count, from_json, window
from pyspark.sql.functions import sum as sum_

from bench.rounds import Row
from bench.spark import rows, topics
from bench.spark.scene import Scene, timed

NAME = "JSON, window aggregation"
CASE = "6 fields, 3 used"
LEAST = 2.0
WINDOW = "1 minute"
USED = ("at", "country", "amount")
FROM_PARQUET = "from_json over Parquet"
TYPED = "typed payloads, all 17 columns"
CHOSEN = "typed payloads, the columns that are used"


def run(scene: Scene) -> list[Row]:
    found = scene.turns(
        {
            FROM_PARQUET: timed(scene, lambda: aggregated(parsed(parquet(scene)))),
            TYPED: timed(scene, lambda: aggregated(typed(scene))),
            CHOSEN: timed(scene, lambda: aggregated(typed(scene, columns=USED))),
        },
    )
    base = found[FROM_PARQUET]
    table = [rows.plain(NAME, CASE, FROM_PARQUET, base)]
    for name in (TYPED, CHOSEN):
        row = rows.plain(NAME, CASE, name, found[name])
        ratio = found[name].events_per_s / base.events_per_s
        # Spark has from_json parse what is used; Python sources it cannot tell.
        least = LEAST if name == CHOSEN else None
        table.append(rows.compared(row, ratio, FROM_PARQUET, least, percent=False))
    return table


def aggregated(frame: DataFrame) -> DataFrame:
    groups = frame.groupBy(window("at", WINDOW), "country")
    return groups.agg(count("*"), sum_("amount"))


def parsed(frame: DataFrame) -> DataFrame:
    """What is written where there are no typed payloads."""
    text = col("value").cast("string")
    return frame.select(from_json(text, topics.FIELDS).alias("json")).select("json.*")


def parquet(scene: Scene) -> DataFrame:
    return scene.spark.read.parquet(str(scene.parquet)).select("value")


def typed(scene: Scene, columns: tuple[str, ...] = ()) -> DataFrame:
    chosen = {"columns": ",".join(columns)} if columns else {}
    return topics.table(
        scene.spark, path=scene.data, valueSchema=topics.FIELDS, **chosen
    )
