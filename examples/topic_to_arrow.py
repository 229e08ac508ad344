"""Read a topic as an Arrow table. Needs the extra penstock[arrow]."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pyarrow as pa

from penstock.log import Batch, Columns, Log, Reader, record_batch

START_MS = 1_700_000_000_000
CITIES = (b"Bonn", b"Graz", b"Lyon")


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        with Log.open(directory) as log:
            write(log)
        with Reader.open(directory) as reader:
            table = pa.Table.from_batches(map(record_batch, batches(reader)))
            print(f"{table.num_rows} rows: {', '.join(table.column_names)}")
            counts = table.group_by("key").aggregate([("payload", "count")])
            for row in counts.sort_by("key").to_pylist():
                print(row["key"].decode(), row["payload_count"])
            print(f"latest: {table['timestamp'][-1]}")


def write(log: Log) -> None:
    log.create_topic("weather")
    for hour in range(100):
        time_ms = START_MS + hour * 3_600_000
        keys: list[bytes | None] = [CITIES[hour % 3]]
        log.append("weather", Columns([b"%d" % hour], time_ms, keys=keys))
        if hour % 10 == 9:
            log.commit()


def batches(reader: Reader) -> Iterator[Batch]:
    offset = reader.topic("weather").start_offset
    while found := reader.read("weather", offset):
        yield from found
        offset = found[-1].end_offset


if __name__ == "__main__":
    main()
