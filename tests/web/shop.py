"""A program with handlers, by URL: ``URL [--orders N] [--rate R] [--seconds S]``.

Orders are charged by ``billing``, which publishes payments; those are noted by
``books`` and announced by ``mailer``. An order whose amount is no number cannot be
charged: ``billing`` fails on it, twice, and gives it up.

Says ``started`` when the handlers run. Publishes so many orders at the rate, every
twentieth of which cannot be charged with ``--broken``, and stays until it is ended.
"""

from __future__ import annotations

import argparse
import json
import signal
import threading
from typing import Any

import penstock
from penstock import Context, Domain, Event

ITEMS = ("tea", "milk", "coffee", "sugar", "bread")

billing = Domain("billing")
books = Domain("books")
mailer = Domain("mailer")


@billing.on("orders", tries=2, backoff_s=0.05)
def charge(event: Event[bytes], context: Context) -> None:
    order = json.loads(event.payload)
    context.publish("payments", json.dumps({"cents": cents_of(order)}).encode())


def cents_of(order: dict[str, Any]) -> int:
    amount = order["amount"]
    return round(amount * 100)


@books.on("payments", order="strict")
def write_down(event: Event[bytes]) -> None:
    json.loads(event.payload)


@mailer.on("payments")
def announce(event: Event[bytes], context: Context) -> None:
    context.publish("mails", json.dumps({"text": "thank you"}).encode())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--orders", type=int, default=0)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--broken", action="store_true")
    said = parser.parse_args()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    with penstock.open(said.url) as broker:
        broker.start(billing, books, mailer)
        print("started", flush=True)  # noqa: T201 - a program's answer
        for number in range(said.orders):
            broken = said.broken and number % 20 == 7
            order = {
                "item": ITEMS[number % len(ITEMS)],
                "amount": "4.50" if broken else 4.5 + number % 9,
                "number": number,
            }
            broker.publish("orders", json.dumps(order).encode())
            if ended.wait(1 / said.rate):
                return
        ended.wait()


if __name__ == "__main__":
    main()
