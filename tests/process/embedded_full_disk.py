"""Publishes large events until it is told to stop, whatever becomes of the disk.

``DATA``: says ``full`` when an event is refused, which is then published again and
again, and ``stored N`` when one was stored that had been refused. On SIGUSR1 it says
``settled N`` when all N events are handled, and ends.
"""

from __future__ import annotations

import asyncio
import signal
import sys

import penstock
from penstock import Context, Domain, Event, Topic
from penstock.errors import WriteFailed

NUMBERS = Topic("numbers", int)
SQUARES = Topic("squares", int)
MATHS = Domain("maths")
# Squares come with it, so both topics fill the disk.
WEIGHT = {"weight": "x" * 20_000}


@MATHS.on(NUMBERS)
async def square(event: Event[int], context: Context) -> None:
    context.publish(SQUARES, event.payload**2, headers=WEIGHT)


async def main(data: str) -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, told.set)
    async with penstock.open(data) as broker:
        await broker.start(MATHS)
        number = 0
        while not told.is_set():
            refused = 0
            while not await stored(broker, number):
                refused += 1
                if refused == 1:
                    print("full", flush=True)
            if refused:
                print(f"stored {number}", flush=True)
            number += 1
        await broker.wait_until_settled(60)
        print(f"settled {number}", flush=True)


async def stored(broker: penstock.AsyncBroker, number: int) -> bool:
    name = f"number-{number}"
    try:
        await broker.publish(NUMBERS, number, headers=WEIGHT, dedup_id=name)
    except WriteFailed:
        await asyncio.sleep(0.01)
        return False
    return True


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
