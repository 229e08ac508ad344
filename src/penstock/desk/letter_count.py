"""How many dead letters are open, by topic: counted on as somebody looks.

The number of all of them is known at any time. Those of each topic are found by reading
the letters once, a bounded part at every look, and remembering where the open ones are
from.
"""

from __future__ import annotations

from collections import Counter

from penstock.broker.broker import Broker
from penstock.delivery.letters import TOPIC
from penstock.desk.letter_book import decode_head
from penstock.desk.scan import forwards

# Letters that one look reads: some milliseconds.
LOOK_LETTERS = 2_000
# Open letters whose topics are remembered, the newest.
MAX_KNOWN = 100_000


class LetterCount:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._topics: dict[int, str] = {}
        """Of open letters, by their number."""
        self._next = 0
        self._changes = -1
        self._counts: dict[str, int] = {}

    def open(self) -> int:
        """How many there are in all."""
        log = self._broker.log
        if not log.has_topic(TOPIC):
            return 0
        topic = log.topic(TOPIC)
        return self._broker.letters.open_between(topic.start_offset, topic.end_offset)

    def by_topic(self) -> dict[str, int]:
        """How many each topic has, as far as they were read."""
        log = self._broker.log
        if not log.has_topic(TOPIC):
            return {}
        grown = self._read_on(log.topic(TOPIC).end_offset)
        shrunk = self._drop_closed(log.topic(TOPIC).start_offset)
        if grown or shrunk:
            self._counts = dict(Counter(self._topics.values()))
        return self._counts

    def _read_on(self, end: int) -> bool:
        start = max(self._next, self._broker.letters.floor)
        if start >= end:
            return False
        stop = min(start + LOOK_LETTERS, end)
        for number, data in forwards(self._broker.log, TOPIC, start, stop):
            name = decode_head(data).topic
            if name is not None and self._broker.letters.verdict(number) is None:
                self._topics[number] = name
        self._next = stop
        while len(self._topics) > MAX_KNOWN:
            del self._topics[next(iter(self._topics))]
        return True

    def _drop_closed(self, start: int) -> bool:
        letters = self._broker.letters
        changes = letters.changes + start
        if changes == self._changes:
            return False
        self._changes = changes
        gone = [n for n in self._topics if n < start or letters.verdict(n) is not None]
        for number in gone:
            del self._topics[number]
        return bool(gone)
