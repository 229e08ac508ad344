"""A whole topic as Arrow record batches, against the same batches in an IPC file.

Both are ordinary file reads of files that are in the page cache, batch by batch. The
IPC file is uncompressed and holds what the topic gives: same columns, same batches of
1 000 events. The memory-mapped contender copies nothing, so in its rows everybody
also goes over all bytes of the payloads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.rounds import Row, Sample, Settings, Stopwatch, payloads, scratch, take_turns
from penstock.log import Columns, Log, Reader, TopicOptions
from penstock.log.arrow import SCHEMA, record_batch

NAME = "topic to Arrow"
BATCH = 1000
BYTES = 256_000_000
CASES = {"100 B": 100, "1 KiB": 1024}
READ_BYTES = 1 << 20
TARGET = 0.6

Batches = Callable[[], Iterator[pa.RecordBatch]]


def run(settings: Settings) -> list[Row]:
    rows: list[Row] = []
    for case, size in CASES.items():
        with scratch(settings.directory) as folder:
            rows += _case(settings, folder, case, size)
    return rows


def _case(settings: Settings, folder: Path, case: str, size: int) -> list[Row]:
    count = settings.scaled(BYTES // size // BATCH)
    topic, ipc = folder / "log", folder / "topic.arrow"
    _write_topic(topic, count, size)
    with Reader.open(topic) as reader:
        _write_ipc(ipc, _of_reader(reader))
        contenders: dict[str, Batches] = {
            "IPC file": lambda: _of_ipc(pa.OSFile(str(ipc))),
            "log": lambda: _of_reader(reader),
        }
        read = take_turns(
            {name: _timed(make, count, size) for name, make in contenders.items()}, 5
        )
        contenders = {
            "IPC file, memory-mapped": lambda: _of_ipc(pa.memory_map(str(ipc))),
            "log": contenders["log"],
        }
        touched = take_turns(
            {
                f"{name}, all bytes touched": _timed(make, count, size, touch=True)
                for name, make in contenders.items()
            },
            5,
        )
    return _rows(case, read, judged=True) + _rows(case, touched, judged=False)


def _rows(case: str, found: dict[str, Sample], *, judged: bool) -> list[Row]:
    base, ours = found.values()
    ratio = ours.events_per_s / base.events_per_s
    rows = []
    for name, sample in found.items():
        of_log = judged and sample is ours
        rows.append(
            Row(
                benchmark=NAME,
                case=case,
                contender=name,
                rate=f"{sample.events_per_s / 1e6:.2f} M events/s, "
                f"{sample.mib_per_s:.0f} MiB/s",
                cpu_s_per_million=sample.cpu_s_per_million,
                ratio=f"{ratio:.2f}x of the IPC file" if sample is ours else "",
                target=f"at least {TARGET}x" if of_log else "",
                met=ratio >= TARGET if of_log else None,
            )
        )
    return rows


def _timed(
    make: Batches, count: int, size: int, *, touch: bool = False
) -> Callable[[], Sample]:
    def run() -> Sample:
        watch = Stopwatch()
        rows = 0
        for batch in make():
            rows += batch.num_rows
            if touch:
                _touch(batch)
            del batch  # everybody's memory may be used again for the next
        assert rows == count * BATCH
        return watch.stop(rows, rows * size)

    return run


def _touch(batch: pa.RecordBatch) -> int:
    data = batch.column("payload").buffers()[2]
    return int(np.frombuffer(data, np.uint8).max())


def _of_ipc(source: pa.NativeFile) -> Iterator[pa.RecordBatch]:
    with source, pa.ipc.open_file(source) as file:
        for number in range(file.num_record_batches):
            yield file.get_batch(number)


def _of_reader(reader: Reader) -> Iterator[pa.RecordBatch]:
    return map(record_batch, reader.batches("t", 0, READ_BYTES))


def _write_topic(directory: Path, count: int, size: int) -> None:
    events = payloads(BATCH, size)
    with Log.open(directory) as log:
        log.create_topic("t", TopicOptions(durability="os"))
        for number in range(count):
            start = number * BATCH
            log.append("t", Columns(events, list(range(start, start + BATCH))))
            log.commit(sync=False)


def _write_ipc(path: Path, batches: Iterator[pa.RecordBatch]) -> None:
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as file:
        for batch in batches:
            file.write_batch(batch)
