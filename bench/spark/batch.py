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
    "the 7 of Kafka": (KAFKA, 0.65),
    "value alone": (("value",), 0.8),
}
LEAST_OF_TUPLES = 5.0
# Tuples are slow: a part of the events shows their rate, too.
TUPLES_READ = 1_000_000
PARQUET, PENSTOCK = "Parquet", "Penstock"
TUPLES = "a Python source of tuples, same files"


def run(scene: Scene) -> list[Row]:
    table: list[Row] = []
    for case, (columns, least) in CASES.items():
        table += _beside_parquet(scene, case, columns, least)
    # By themselves: Java compiles what reads rows of Python for those who use it, and
    # is slower for everybody once tuples have been among them.
    for case, (columns, _) in CASES.items():
        if columns:
            table += _beside_tuples(scene, case, columns)
    return table


def _beside_parquet(
    scene: Scene, case: str, columns: tuple[str, ...], least: float
) -> list[Row]:
    contenders: dict[str, Contender] = {
        PARQUET: timed(scene, partial(parquet, scene, columns)),
        PENSTOCK: timed(scene, partial(topic, scene, columns)),
    }
    found = scene.turns(contenders)
    part = found[PENSTOCK].events_per_s / found[PARQUET].events_per_s
    ours = rows.plain(NAME, case, PENSTOCK, found[PENSTOCK])
    return [
        rows.plain(NAME, case, PARQUET, found[PARQUET]),
        rows.compared(ours, part, PARQUET, least),
    ]


def _beside_tuples(scene: Scene, case: str, columns: tuple[str, ...]) -> list[Row]:
    events = min(TUPLES_READ, scene.events)
    some = partial(tuples, scene, columns, events)
    contenders: dict[str, Contender] = {
        PENSTOCK: timed(scene, partial(topic, scene, columns)),
        TUPLES: timed(scene, some, events=events),
    }
    found = scene.turns(contenders)
    times = found[PENSTOCK].events_per_s / found[TUPLES].events_per_s
    theirs = rows.plain(NAME, case, TUPLES, found[TUPLES])
    return [
        rows.plain(NAME, case, PENSTOCK, found[PENSTOCK]),
        rows.beaten(theirs, times, LEAST_OF_TUPLES),
    ]


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
