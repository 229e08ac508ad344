"""A topic read from its files into nowhere: beside Parquet, and beside tuples."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from bench.rounds import Contender, Row
from bench.spark import plain, rows, topics
from bench.spark.scene import Scene, timed

NAME = "table from files"
KAFKA = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
# Columns, and the part of Parquet's rate that is promised; none: all there are.
CASES: dict[str, tuple[tuple[str, ...], float]] = {
    "all 11 columns": ((), 0.6),
    "the 7 of Kafka": (KAFKA, 0.6),
    "value alone": (("value",), 0.75),
}
LEAST_OF_TUPLES = 5.0
# Tuples are slow: a part of the events shows their rate, too.
TUPLES_READ = 1_000_000
PARQUET, PENSTOCK = "Parquet", "Penstock"
TUPLES = "a Python source of tuples, same files"


def run(scene: Scene) -> list[Row]:
    table: list[Row] = []
    for case, (columns, least) in CASES.items():
        contenders: dict[str, Contender] = {
            PARQUET: timed(scene, partial(parquet, scene, columns)),
            PENSTOCK: timed(scene, partial(topic, scene, columns)),
        }
        if columns:
            events = min(TUPLES_READ, scene.events)
            some = partial(tuples, scene, columns, events)
            contenders[TUPLES] = timed(scene, some, events=events)
        found = scene.turns(contenders)
        ours = found[PENSTOCK]
        of_parquet = ours.events_per_s / found[PARQUET].events_per_s
        table.append(rows.plain(NAME, case, PARQUET, found[PARQUET]))
        row = rows.plain(NAME, case, PENSTOCK, ours)
        table.append(rows.compared(row, of_parquet, PARQUET, least))
        if TUPLES in found:
            times = ours.events_per_s / found[TUPLES].events_per_s
            row = rows.plain(NAME, case, TUPLES, found[TUPLES])
            table.append(rows.beaten(row, times, LEAST_OF_TUPLES))
    return table


def parquet(scene: Scene, columns: tuple[str, ...]) -> DataFrame:
    frame = scene.spark.read.parquet(str(scene.parquet))
    return frame.select(*columns) if columns else frame


def topic(scene: Scene, columns: tuple[str, ...]) -> DataFrame:
    options = {"columns": ",".join(columns)} if columns else {}
    return topics.table(scene.spark, path=scene.data, **options)


def tuples(scene: Scene, columns: tuple[str, ...], events: int) -> DataFrame:
    reader = scene.spark.read.format(plain.TUPLES)
    return reader.options(
        path=str(scene.data),
        topic=topics.TOPIC,
        columns=",".join(columns),
        events=str(events),
    ).load()
