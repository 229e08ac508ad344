"""A program that publishes: so many events, so many a second or as fast as it can.

    python -m bench.spark.publisher PORT TOPIC EVENTS RATE

Says ``ready``, waits for a line, publishes, and says when it began and ended. A rate of
0 is no rate.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.spark.scene import ROOT
from bench.spark.topics import payloads
from penstock.client import connect

BATCH = 2000
# Different payloads; they come round again and again.
DIFFERENT = 50


def main() -> None:
    port, topic, events, rate = sys.argv[1:]
    batches = [payloads(number * BATCH, BATCH) for number in range(DIFFERENT)]
    with connect(f"127.0.0.1:{port}", name="bench") as client:
        print("ready", flush=True)
        sys.stdin.readline()
        began_s, left, number = time.time(), int(events), 0
        while left > 0:
            batch = batches[number % DIFFERENT][:left]
            client.publish(topic, batch)
            left -= len(batch)
            number += 1
            if int(rate):
                due_s = began_s + number * BATCH / int(rate)
                time.sleep(max(due_s - time.time(), 0.0))
        print(json.dumps([began_s, time.time()]), flush=True)


class Publisher:
    """The program above, seen from outside."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None and process.stdin is not None
        self._said, self._told = process.stdout, process.stdin
        assert self._said.readline() == "ready\n", "it did not start"

    def go(self) -> None:
        self._told.write("go\n")
        self._told.flush()

    @property
    def busy(self) -> bool:
        return self._process.poll() is None

    def times(self) -> tuple[float, float]:
        """When it began and ended; waits for that."""
        began_s, ended_s = json.loads(self._said.readline())
        return began_s, ended_s


@contextmanager
def publisher(port: int, topic: str, events: int, rate: int = 0) -> Iterator[Publisher]:
    words = [str(port), topic, str(events), str(rate)]
    command = [sys.executable, "-m", "bench.spark.publisher", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT
    ) as process:
        try:
            yield Publisher(process)
        finally:
            if process.poll() is None:
                process.kill()


if __name__ == "__main__":
    main()
