"""Events that cause each other, over some topics, and a plain scan to compare with.

``Forest`` does what may happen to a log, in any order: publishing with given, generated
and repeated ids, with parents that exist, existed or never did; trimming, truncating,
compacting, deleting; restarts, with and without the index, at any point of filling it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from penstock.chains import ChainQuestion, Chains
from penstock.chains.walk import Direction
from penstock.errors import UnknownEvent
from penstock.log import Columns, GroupCommit, Log, StoredTopic, TopicOptions

TOPICS = ("a", "b", "c")
NAMES = ("x", "y", "z", "order-1", "0190b3c4-1d2e-7abc-8def-000000000000")

T = TypeVar("T")
Place = tuple[str, int]
Row = tuple[str, str | None]


class Forest:
    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.known: list[str] = [*NAMES]
        self._open()

    def _open(self) -> None:
        self.log = Log.open(self.folder, entropy=self.random.randbytes)
        self.chains = Chains(self.log)
        self.log.on_commit = self._note

    def _note(self, commit: GroupCommit) -> None:
        for topic, *_ in commit.counts():
            self.chains.note(topic)

    def close(self) -> None:
        self.chains.abandon()
        self.log.abandon()

    # What may happen

    def act(self) -> str:
        """Do something; what it was."""
        doings: list[Callable[[], None]] = [
            self.publish,
            self.publish,
            self.publish,
            self.publish,
            self.fill,
            self.fill,
            self.trim,
            self.truncate,
            self.compact,
            self.delete,
            self.restart,
            self.lose_index,
        ]
        doing = self.random.choice(doings)
        doing()
        return doing.__name__

    def publish(self) -> None:
        name = self.random.choice(TOPICS)
        if not self.log.has_topic(name):
            self.log.create_topic(name, TopicOptions(segment_bytes=1024))
        count = self.random.choice((1, 1, 2, 5, 30))
        ids = self._some(count, lambda: self.random.choice(NAMES))
        parents = self._some(count, lambda: self.random.choice(self.known))
        keys = self._some(count, lambda: self.random.choice((b"k", b"l")))
        now = 1_700_000_000_000 + self.random.randrange(20)
        columns = Columns([b"payload"] * count, now, ids=ids, keys=keys)
        columns.parents = parents
        appended = self.log.append(name, columns)
        self.known.append(appended.generated_id(self.random.randrange(count)))
        self.log.commit()

    def _some(self, count: int, make: Callable[[], T]) -> list[T | None] | None:
        """Nothing, or a value for some of them."""
        if self.random.random() < 0.3:
            return None
        return [make() if self.random.random() < 0.6 else None for _ in range(count)]

    def fill(self) -> None:
        """A part of a step at most, so that anything may happen in between."""
        self.chains._fill(self.random.choice((1, 100, 10_000)))

    def trim(self) -> None:
        if topic := self._topic():
            span = range(topic.start_offset, topic.end_offset + 1)
            self.log.trim(topic.name, self.random.choice(span))

    def truncate(self) -> None:
        if topic := self._topic():
            span = range(topic.start_offset, topic.end_offset + 1)
            self.log.truncate(topic.name, self.random.choice(span))

    def compact(self) -> None:
        if topic := self._topic():
            self.log.compact(topic.name)

    def delete(self) -> None:
        if (topic := self._topic()) and self.random.random() < 0.5:
            self.log.delete_topic(topic.name)

    def restart(self) -> None:
        """In order, or with everything dropped where it is."""
        if self.random.random() < 0.5:
            self.chains.close()
            self.log.close()
        else:
            self.chains.abandon()
            self.log.abandon()
        self._open()

    def lose_index(self) -> None:
        self.chains.abandon()
        self.log.abandon()
        for path in self.folder.glob("chains.sqlite*"):
            if self.random.random() < 0.5:
                path.unlink()
            else:
                path.write_bytes(self.random.randbytes(5000))
        self._open()

    def _topic(self) -> StoredTopic | None:
        found = sorted(self.log.each_topic(), key=lambda topic: topic.name)
        return self.random.choice(found) if found else None

    # Questions

    def ask(self, question: ChainQuestion) -> dict[Place, int]:
        """Places and levels of the whole answer; nothing if there is no such event."""
        found: dict[Place, int] = {}
        try:
            number, walk = self.chains.ask(question)
            while True:
                for one in walk.take():
                    place = (one.hit.topic.name, one.hit.event.base_offset)
                    assert place not in found, "an event is found once"
                    found[place] = one.level
                if walk.done:
                    break
                assert self.chains.go_on(number) is walk
        except UnknownEvent:
            return {}
        assert walk.cut is None
        return found

    def scan(self) -> dict[Place, Row]:
        """Id and parent of everything there is."""
        found: dict[Place, Row] = {}
        for name in self.log.topics():
            offset = self.log.topic(name).start_offset
            while batches := self.log.read(name, offset):
                for batch in batches:
                    for event in batch.events():
                        found[name, event.offset] = (event.id, event.parent)
                offset = batches[-1].end_offset
        return found

    def expected(self, id_: str, direction: Direction) -> dict[Place, int]:
        """The answer by looking at everything."""
        events = self.scan()
        levels = {place: 0 for place, (name, _) in events.items() if name == id_}
        asked = list(levels)
        if direction != "down":
            _spread(events, levels, asked, up=True)
        if direction != "up":
            _spread(events, levels, asked, up=False)
        return levels


def _spread(
    events: dict[Place, Row], levels: dict[Place, int], start: list[Place], *, up: bool
) -> None:
    """Add all that is reached one way, with the distance it was reached at first."""
    passed, generation, level = set(start), start, 0
    while generation:
        level += -1 if up else 1
        ids = {events[place][0] for place in generation}
        parents = {events[place][1] for place in generation}
        generation = [
            place
            for place, (id_, parent) in events.items()
            if place not in passed and (id_ in parents if up else parent in ids)
        ]
        passed.update(generation)
        for place in generation:
            levels.setdefault(place, level)
