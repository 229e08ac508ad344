"""A program that handles events of a server by key; ``URL TOKEN FILE``.

Each beginning and each end of a call is one line of the file, which several programs
append to: what happened, the key, the number, the process.
"""

from __future__ import annotations

import os
import sys
import time

import penstock
from penstock import Context, Domain, Event

SHOP = Domain("shop")
FILE = os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


@SHOP.on("work", order="key", tries=20, backoff_s=0.01, timeout_s=60.0, concurrency=4)
def handle(event: Event[bytes], context: Context) -> None:
    assert event.key is not None
    say("begin", event)
    time.sleep(0.005)
    if int(event.payload) % 7 == 3 and context.tries == 1:
        say("fail", event)
        raise ValueError("not at the first try")
    say("end", event)


def say(what: str, event: Event[bytes]) -> None:
    """In one write, so that lines of several processes do not mix."""
    assert event.key is not None
    line = f"{what} {event.key.decode()} {event.payload.decode()} {os.getpid()}\n"
    os.write(FILE, line.encode())


if __name__ == "__main__":
    with penstock.open(sys.argv[1], token=sys.argv[2]) as broker:
        broker.run(SHOP)
