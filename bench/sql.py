"""Questions over a topic with DuckDB, against the same ones over its Parquet export.

    python -m bench.sql [--quick]

Ten million events of JSON, keys and times, in a data directory and in one Parquet file
as ``penstock log export`` writes it (zstd); files are in the page cache, and both are
asked in one process, in turns. Parquet keeps its columns apart and compressed; a topic
keeps events as they came, in frames of columns. Payloads are text in both.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench import machine, report
from bench.rounds import Row, Sample, Settings, Stopwatch, scratch, take_turns
from penstock.log import Batch, Columns, Log, Reader, TopicOptions, write_parquet
from penstock.sql.engine import SqlEngine
from penstock.table.connection import BrokerAccess

NAME = "questions in SQL"
EVENTS, BATCH = 10_000_000, 1_000
NEW_YEAR = 1_767_225_600_000
READ_BYTES = 4 << 20
QUESTIONS = {
    "count(*)": "SELECT count(*) FROM {table}",
    "events by minute": "SELECT date_trunc('minute', timestamp) AS m, count(*) "
    "FROM {table} GROUP BY m",
    "events by key": "SELECT key, count(*), max(priority) FROM {table} GROUP BY key",
    "a hundredth by offset": 'SELECT sum("offset") FROM {table} '
    'WHERE "offset" BETWEEN {from_} AND {to}',
    "a hundredth by time": "SELECT count(*), max(key) FROM {table} "
    "WHERE timestamp >= make_timestamptz({since}) "
    "AND timestamp < make_timestamptz({until})",
    "a field of the payload": "SELECT ({payload}->>'$.user') AS user, count(*) "
    "FROM {table} GROUP BY user",
}


class Topics:
    def names(self, query: str = "") -> list[str]:
        return ["events"]

    def schema(self, topic: str) -> str | None:
        return None


def run(settings: Settings) -> list[Row]:
    count = settings.scaled(EVENTS)
    with scratch(settings.directory) as folder:
        _write_topic(folder / "data", count)
        _write_parquet(folder / "data", folder / "events.parquet")
        connection = BrokerAccess(servers=(), path=str(folder / "data"), retry_s=0)
        rows: list[Row] = []
        with SqlEngine(connection, Topics()) as engine:
            for case, question in QUESTIONS.items():
                rows += _case(engine, folder, case, question, count)
        return rows


def _case(
    engine: SqlEngine, folder: Path, case: str, question: str, count: int
) -> list[Row]:
    span = {
        "from_": count // 2,
        "to": count // 2 + count // 100 - 1,
        "since": (NEW_YEAR + count // 2) * 1000,
        "until": (NEW_YEAR + count // 2 + count // 100) * 1000,
    }
    file = f"'{folder / 'events.parquet'}'"
    of_file = question.format(table=file, payload="decode(payload)", **span)
    of_topic = question.format(table="events", payload="value", **span)
    found = take_turns(
        {
            "Parquet": _timed(engine, of_file, count),
            "topic": _timed(engine, of_topic, count),
        },
        3,
    )
    base, ours = found["Parquet"], found["topic"]
    ratio = ours.events_per_s / base.events_per_s
    return [
        _row(case, "Parquet", base),
        _row(case, "topic", ours, f"{ratio:.2f}x of Parquet"),
    ]


def _row(case: str, contender: str, sample: Sample, ratio: str = "") -> Row:
    return Row(
        benchmark=NAME,
        case=case,
        contender=contender,
        rate=f"{sample.seconds:.2f} s, {sample.events_per_s / 1e6:.1f} M events/s",
        cpu_s_per_million=sample.cpu_s_per_million,
        ratio=ratio,
    )


def _timed(engine: SqlEngine, query: str, count: int) -> Callable[[], Sample]:
    def once() -> Sample:
        watch = Stopwatch()
        assert list(engine.answer(query).rows()), query
        return watch.stop(count, 0)

    return once


def _write_topic(directory: Path, count: int) -> None:
    with Log.open(directory) as log:
        log.create_topic("events", TopicOptions(durability="os"))
        for start in range(0, count, BATCH):
            numbers = range(start, start + BATCH)
            log.append(
                "events",
                Columns(
                    [b'{"user":"u%d","total":%d}' % (n % 997, n) for n in numbers],
                    [NEW_YEAR + n for n in numbers],
                    keys=[b"k%d" % (n % 100) for n in numbers],
                    priorities=[n % 4 for n in numbers],
                ),
            )
            log.commit(sync=False)


def _write_parquet(directory: Path, file: Path) -> None:
    with Reader.open(directory) as reader, file.open("wb") as sink:
        write_parquet(sink, "events", _batches(reader))


def _batches(reader: Reader) -> Iterator[Batch]:
    return reader.batches("events", 0, READ_BYTES)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.sql", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the events")
    directory = Path(tempfile.gettempdir())
    parser.add_argument("--directory", type=Path, default=directory)
    options = parser.parse_args()
    for name, fact in machine.describe(options.directory).items():
        print(f"{name}: {fact}")
    print(report.text(run(Settings(directory=options.directory, quick=options.quick))))


if __name__ == "__main__":
    main()
