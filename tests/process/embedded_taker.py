"""A program that handles numbers in order, by URL; ``URL NAME ORDER``.

Says ``started``, then for each event it handles its name, the offset and the try.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import penstock
from penstock import Context, Domain, Event
from penstock.embedded.options import HandlerOrder


def main(url: str, name: str, order: HandlerOrder) -> None:
    domain = Domain("taker")

    @domain.on("numbers", order=order, tries=9, backoff_s=0.01, concurrency=4)
    def handle(event: Event[bytes], context: Context) -> None:
        os.write(1, b"%s %d %d\n" % (name.encode(), event.offset, context.tries))
        time.sleep(0.002)
        if event.offset % 10 == 3 and context.tries == 1:
            raise ValueError("not at first")

    with penstock.open(url) as broker:
        broker.start(domain)
        print("started", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3])  # type: ignore[arg-type]
