"""A consumer that is killed by one of its events, in the middle of it.

    python poisoned.py DIRECTORY

It consumes from the server on that data directory. Every event that was handled is a
line on standard output. The poisonous one ends the process with SIGKILL, whatever else
it holds; without it the process ends when nothing is left.
"""

from __future__ import annotations

import os
import signal
import sys

from penstock.client import connect

TOPIC, NAME, POISON = "orders", "billing", b"poison"
TRIES, WINDOW = 3, 6


def main() -> None:
    with connect(sys.argv[1]) as client:
        subscription = client.subscribe(
            TOPIC, NAME, start="earliest", tries=TRIES, window=WINDOW
        )
        while not finished(
            client.ask("subscriptions.show", subscriber=NAME, topic=TOPIC)
        ):
            while (delivery := subscription.next(0.2)) is not None:
                handle(delivery.payload)
                subscription.ack(delivery)
                subscription.flush()


def handle(payload: bytes) -> None:
    if payload == POISON:
        os.kill(os.getpid(), signal.SIGKILL)
    os.write(sys.stdout.fileno(), payload + b"\n")


def finished(view: object) -> bool:
    assert isinstance(view, dict)
    return bool(view["lag"] == 0)


if __name__ == "__main__":
    main()
