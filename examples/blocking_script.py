"""A script without an event loop: handlers run in threads, beside what it does."""

from __future__ import annotations

import tempfile
from collections import Counter

import penstock
from penstock import Domain, Event, Topic

WORDS = Topic("words", str)
COUNTER = Domain("counter")
seen: Counter[str] = Counter()


@COUNTER.on_batch(WORDS, size=100)
def add(events: list[Event[str]]) -> None:
    seen.update(event.payload for event in events)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        with penstock.open(directory) as broker:
            broker.publish_many(WORDS, ["tea", "coffee", "milk", "tea"])
        with penstock.open(directory) as broker:
            print("a new subscriber gets what was published before it came")
            broker.start(COUNTER)
            stored = broker.publish(WORDS, "coffee")
            print(f"{stored.topic} has offset {stored.offset}")
            broker.wait_until_settled(timeout_s=10)
        print(*(f"{count} {word}" for word, count in sorted(seen.items())), sep=", ")


if __name__ == "__main__":
    main()
