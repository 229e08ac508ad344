"""Handles numbers, of which one ends the process; ``DATA SIDE FLAVOUR DEATH``.

Says ``settled`` when nothing is left to do. Numbers that were handled stand in SIDE.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable

import penstock
from penstock import Domain, Event, Topic, desk
from penstock.embedded.handler import Function

NUMBERS = Topic("numbers", int)
COUNT = 300
POISON = 77
TRIES = 3
SHOP = Domain("shop")
DEATHS: dict[str, Callable[[], object]] = {
    "exit": lambda: os._exit(3),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
}


def handler(side: int, flavour: str, death: Callable[[], object]) -> Function:
    def handle(event: Event[int]) -> None:
        if event.payload == POISON:
            time.sleep(0.05)  # others are under way by then
            death()
        os.write(side, b"%d\n" % event.payload)

    async def handle_async(event: Event[int]) -> None:
        handle(event)

    return handle_async if flavour == "async" else handle


def main(data: str, side: str, flavour: str, death: str) -> None:
    number = os.open(side, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    SHOP.on(NUMBERS, tries=TRIES, backoff_s=0.01)(
        handler(number, flavour, DEATHS[death])
    )
    with penstock.open(data) as broker:
        if not broker.ask(desk.topics()):
            broker.publish_many(NUMBERS, range(COUNT))
        broker.start(SHOP)
        broker.wait_until_settled(60)
        print("settled", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5])
