"""Append events, close the log, open it again, and read them back."""

from __future__ import annotations

import tempfile

from penstock.log import Columns, Log


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        with Log.open(directory) as log:
            write(log)
        with Log.open(directory) as log:
            read(log)


def write(log: Log) -> None:
    log.create_topic("orders")
    payloads = [b'{"item": "tea"}', b'{"item": "coffee"}', b'{"item": "milk"}']
    times_ms = [1_700_000_000_000, 1_700_000_060_000, 1_700_000_120_000]
    keys: list[bytes | None] = [b"ann", b"bob", b"ann"]
    added = log.append("orders", Columns(payloads, times_ms, keys=keys))
    print(f"appended {added.count} events, group {log.outcome(added.group)}")
    log.sync()
    print(f"after sync the group is {log.outcome(added.group)}")


def read(log: Log) -> None:
    offset = log.offset_at("orders", 1_700_000_030_000)
    print(f"half a minute later is offset {offset}")
    while batches := log.read("orders", offset):
        for batch in batches:
            for event in batch.events():
                print(event.offset, event.key, event.payload.decode())
        offset = batches[-1].end_offset


if __name__ == "__main__":
    main()
