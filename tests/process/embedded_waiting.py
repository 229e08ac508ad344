"""A blocking program that waits in one way or another; ``DATA WAY``.

Says ``waiting`` when it is about to, and ``closed`` when it has left the broker.
"""

from __future__ import annotations

import sys
import threading
import time

import penstock
from penstock import Domain, Event
from penstock.errors import BrokerClosed

SHOP = Domain("shop")


@SHOP.on("numbers", timeout_s=60.0, concurrency=1)
def handle(event: Event[bytes]) -> None:
    time.sleep(0.2)


def main(data: str, way: str) -> None:
    with penstock.open(data) as broker:
        broker.publish_many("numbers", [b"x"] * 1000)
        say("waiting")
        if way == "run":
            broker.run(SHOP)
        elif way == "settled":
            broker.start(SHOP)
            broker.wait_until_settled()
        else:
            broker.start(SHOP)
            waiter = threading.Thread(target=wait_beside, args=[broker])
            waiter.start()
            time.sleep(0.5)
    say("closed")


def say(line: str) -> None:
    """In one piece: two threads may say something at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def wait_beside(broker: penstock.BlockingBroker) -> None:
    try:
        broker.wait_until_settled()
    except BrokerClosed:
        say("the broker is closed")


if __name__ == "__main__":
    main(*sys.argv[1:3])
