"""One process writes; another one follows and sees only what is synced."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from penstock.log import Columns, Log, Reader
from penstock.model import Event

LAST = b"the end"


def write(directory: str) -> None:
    with Log.open(directory) as log:
        log.create_topic("news")
        log.sync()
        command = [sys.executable, __file__, directory]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
            assert follower.stdout is not None
            for payload in (b"one", b"two", LAST):
                log.append("news", Columns([payload], log.now_ms()))
                log.sync()
                print(f"wrote {payload.decode()}", flush=True)
                print(follower.stdout.readline(), end="", flush=True)


def follow(directory: str) -> Iterator[Event]:
    with Reader.open(directory) as reader:
        offset = 0
        while True:
            for batch in reader.read("news", offset):
                yield from batch.events()
                offset = batch.end_offset
            while not reader.refresh():
                time.sleep(0.01)


def main() -> None:
    if len(sys.argv) == 1:
        with tempfile.TemporaryDirectory() as directory:
            write(directory)
        return
    for event in follow(sys.argv[1]):
        print(f"  follower saw {event.offset}: {event.payload.decode()}", flush=True)
        if event.payload == LAST:
            return


if __name__ == "__main__":
    main()
