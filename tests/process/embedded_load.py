"""Ten handlers of one topic, each of which fails with one event in a hundred.

``DATA EVENTS``: publishes, handles, and says how many events were handled, and the
most memory that took, in MiB.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import penstock
from penstock import Domain, Event, LocalOptions, Topic
from penstock.broker.options import BrokerOptions
from penstock.embedded.handler import Function

NUMBERS = Topic("numbers", int)
HANDLERS = 10
EVERY = 100
BATCH = 5000
# So that every failed try can be looked at.
OPTIONS = LocalOptions(broker=BrokerOptions(error_retention_bytes=1 << 30))


def fails(handler: int, offset: int) -> bool:
    return offset % EVERY == handler


def domain(number: int, done: list[int]) -> Domain:
    made = Domain(f"handler-{number}")
    made.on(NUMBERS, backoff_s=0.01, concurrency=64)(handler(number, done))
    return made


def handler(number: int, done: list[int]) -> Function:
    async def handle(event: Event[int]) -> None:
        assert event.payload == event.offset
        if fails(number, event.offset):
            raise ValueError(f"{event.offset} is nothing for {number}")
        done[number] += 1

    return handle


async def main(data: str, events: int) -> None:
    done = [0] * HANDLERS
    async with penstock.open(data, options=OPTIONS) as broker:
        await broker.start(*(domain(number, done) for number in range(HANDLERS)))
        for base in range(0, events, BATCH):
            await broker.publish_many(NUMBERS, range(base, min(base + BATCH, events)))
        await broker.wait_until_settled(240)
    print(sum(done), peak_mib(), flush=True)


def peak_mib() -> int:
    # Not ru_maxrss: that survives exec, so it begins at the size of the parent.
    status = Path("/proc/self/status").read_text()
    found = re.search(r"VmHWM:\s*(\d+) kB", status)
    assert found is not None
    return int(found[1]) // 1024


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
