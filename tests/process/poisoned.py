"""A consumer that is killed by one of its events, in the middle of it.

    python poisoned.py served|inside DIRECTORY

``served`` consumes from the server on that data directory, ``inside`` has the broker
in its own process, as an embedded application does. Every event that was handled is a
line on standard output. The poisonous one ends the process with SIGKILL, whatever else
it holds; without it the process ends when nothing is left.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial

from penstock.broker.broker import Broker
from penstock.client import connect
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Owed
from penstock.log import Log
from penstock.model.policy import Policy

TOPIC, NAME, POISON = "orders", "billing", b"poison"
TRIES, WINDOW = 5, 10


def main() -> None:
    how, directory = sys.argv[1:]
    if how == "served":
        served(directory)
    else:
        inside(directory)


def handle(payload: bytes) -> None:
    if payload == POISON:
        os.kill(os.getpid(), signal.SIGKILL)
    os.write(sys.stdout.fileno(), payload + b"\n")


def served(directory: str) -> None:
    with connect(directory) as client:
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


def finished(view: object) -> bool:
    assert isinstance(view, dict)
    return bool(view["lag"] == 0)


class Handler:
    """An outlet that is never called: it asks by itself."""

    def released(self, consumer: Consumer, owed: list[Owed]) -> None: ...

    def moved(self, consumer: Consumer) -> None: ...

    def ended(self, consumer: Consumer, reason: str) -> None: ...


def inside(directory: str) -> None:
    policy = Policy(tries=TRIES, window=WINDOW)
    with Broker(partial(Log.open, directory)) as broker:
        one = broker.subscribe(NAME, TOPIC, policy, "earliest")
        consumer = broker.attach(one, Handler())
        while portions := broker.take(consumer, broker.log.now_ms() / 1000, WINDOW):
            one.note_tries()
            broker.log.commit()
            for portion in portions:
                for index in range(portion.lo, portion.hi):
                    handle(portion.page.payloads[index])
                    one.settle(portion.page.batch.offset_of(index))
        broker.log.commit()


if __name__ == "__main__":
    main()
