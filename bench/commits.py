"""A topic that was published one event a commit, read beside one of a thousand each.

Whoever reads it later shall not be able to tell. Both hold the same events and were
closed in good order, so all of them are written out; turns are taken with each reader.
"""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path

import uvloop

import penstock
from bench.rounds import Row, Sample, Settings, Stopwatch, payloads, scratch, take_turns
from penstock.cli.export import export
from penstock.cli.log import batches_of
from penstock.log import Columns, Log, Reader, TopicOptions
from penstock.log.arrow import record_batch

NAME = "one event a commit"
TOPIC = "t"
EVENTS, SIZE = 300_000, 100
READ_BYTES = 1 << 20
MANY, ONE = "1 000 a commit", "one a commit"
COMMITS = {MANY: 1000, ONE: 1}
MOST = 1.5

Read = Callable[[Path], object]


def run(settings: Settings) -> list[Row]:
    rows: list[Row] = []
    events = settings.scaled(EVENTS)
    with scratch(settings.directory) as folder:
        for name, each in COMMITS.items():
            write(folder / name, events, each)
        for case, read in readers(folder).items():
            contenders = {name: _timed(read, folder / name, events) for name in COMMITS}
            rows += rows_of(case, take_turns(contenders, settings.rounds))
        if importlib.util.find_spec("pyspark") is not None:
            rows += _spark(settings, folder, events)
    return rows


def write(directory: Path, events: int, each: int) -> None:
    with Log.open(directory) as log:
        log.create_topic(TOPIC, TopicOptions(durability="os"))
        texts = payloads(events, SIZE)
        for start in range(0, events, each):
            times = list(range(start, start + each))
            log.append(TOPIC, Columns(texts[start : start + each], times))
            log.commit(sync=False)


def readers(folder: Path) -> dict[str, Read]:
    turns = itertools.count()
    return {
        "to Arrow": _to_arrow,
        "Parquet export": lambda path: _to_parquet(path, folder / "out.parquet"),
        "replay to a new subscriber": lambda path: uvloop.run(
            _replay(path, f"replay-{next(turns)}")
        ),
    }


def rows_of(case: str, found: dict[str, Sample]) -> list[Row]:
    slower = found[ONE].seconds / found[MANY].seconds
    return [
        Row(
            benchmark=NAME,
            case=case,
            contender=name,
            rate=f"{sample.events_per_s / 1e6:.2f} M events/s",
            cpu_s_per_million=sample.cpu_s_per_million,
            ratio=f"{slower:.2f}x the time of {MANY}" if name == ONE else "",
            target=f"at most {MOST:g}x" if name == ONE else "",
            met=slower <= MOST if name == ONE else None,
        )
        for name, sample in found.items()
    ]


def _spark(settings: Settings, folder: Path, events: int) -> list[Row]:
    from bench.spark.scene import scene, timed

    with scene(settings) as one:
        read = one.spark.read.format("penstock").option("subscribe", TOPIC)
        contenders = {
            name: timed(one, partial(read.load, str(folder / name)), events=events)
            for name in COMMITS
        }
        return rows_of("read by Spark", take_turns(contenders, settings.rounds))


def _timed(read: Read, path: Path, events: int) -> Callable[[], Sample]:
    def run() -> Sample:
        watch = Stopwatch()
        read(path)
        return watch.stop(events, events * SIZE)

    return run


def _to_arrow(path: Path) -> None:
    offset = 0
    with Reader.open(path) as reader:
        while found := reader.read(TOPIC, offset, READ_BYTES):
            for batch in found:
                record_batch(batch)
            offset = found[-1].end_offset


def _to_parquet(path: Path, out: Path) -> None:
    with Reader.open(path) as reader:
        batches = batches_of(reader, reader.topic(TOPIC), None, None)
        export(TOPIC, batches, "parquet", str(out))


async def _replay(path: Path, name: str) -> None:
    domain = penstock.Domain(name)

    @domain.on_batch(TOPIC, size=1000)
    async def handle(events: list[penstock.Event[bytes]]) -> None:
        pass

    async with penstock.open(path) as broker:
        await broker.start(domain)
        await broker.wait_until_settled()
