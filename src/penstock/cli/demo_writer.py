"""The process that ``penstock demo`` kills: appends events and says so.

Run as ``python -m penstock.cli.demo_writer DIR``. Every event is synced on its own,
and its offset is printed only after that, so each line is a promise.
"""

from __future__ import annotations

import sys
from typing import TextIO

from penstock.log import Columns, Log

TOPIC = "orders"
PRODUCER = "demo-writer"
# An end, should the demo not kill the process.
MAX_EVENTS = 100_000


def write(directory: str, out: TextIO, max_events: int = MAX_EVENTS) -> None:
    """Append and confirm events one by one."""
    with Log.open(directory) as log:
        for _ in range(max_events):
            offset = log.topic(TOPIC).end_offset
            payload = b'{"order":%d}' % offset
            log.append(TOPIC, Columns([payload], log.now_ms(), producer=PRODUCER))
            log.sync()
            out.write(f"{offset}\n")
            out.flush()


if __name__ == "__main__":
    write(sys.argv[1], sys.stdout)
