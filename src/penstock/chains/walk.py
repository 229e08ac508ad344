"""A question about a chain: first up to what caused an event, then down from it.

The answer comes in steps, each bounded in effort: catching up with what was in the log
when it was asked, finding the events that are meant, generation by generation the
ancestors, then the descendants. Each event is found once, whatever circles the ids
make; two events with one id are two events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from penstock.chains.filling import Filler
from penstock.chains.finding import ChainPlace, Finder, Hit, Hits, Meter
from penstock.errors import UnknownEvent
from penstock.log import BrokerLog

Direction = Literal["both", "up", "down"]
CutReason = Literal["depth", "limit"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainQuestion:
    """Which event, by its id or by topic and offset; how far, and how many.

    ``whole``: down from the first causes, and not from the event itself.
    """

    id: str | None = None
    topic: str = ""
    offset: int = 0
    depth: int = 100
    limit: int = 1000
    direction: Direction = "both"
    whole: bool = False

    def __str__(self) -> str:
        return f"{self.topic}:{self.offset}" if self.id is None else self.id


class ChainStep(NamedTuple):
    """One event; ``level`` is 0 for those asked for, less for what caused them."""

    hit: Hit
    level: int
    asked: bool


class _Reached(Exception):
    """The limit: there are more."""


Fill = Callable[[int], int]


class Walk:
    def __init__(
        self,
        question: ChainQuestion,
        log: BrokerLog,
        filler: Filler,
        finder: Finder,
        meter: Meter,
    ) -> None:
        self._question = question
        self._log = log
        self._filler = filler
        self._finder = finder
        self._meter = meter
        self._found: list[ChainStep] = []
        self._seen: dict[ChainPlace, int] = {}
        """Levels of all that was found."""
        self._ids: dict[ChainPlace, tuple[str, str | None]] = {}
        """Id and parent of all that was found."""
        self._targets = {
            topic_id: topic.end_offset
            for topic_id in filler.waiting
            if (topic := log.topic_by_id(topic_id)) is not None
        }
        self._steps = self._walk()
        self.cut: CutReason | None = None
        self.done = False

    def step(self, effort: int, fill: Fill) -> None:
        """Go on; ``fill`` indexes with so much effort, and answers 0 if it cannot.

        Raises UnknownEvent, UnknownTopic, and what reading and indexing raise.
        """
        self._fill = fill
        self._meter.left = effort
        self._finder.forget()
        for _ in self._steps:
            if self._meter.left <= 0:
                return
        self.done = True

    def take(self) -> list[ChainStep]:
        """What was found since it was last asked for."""
        found, self._found = self._found, []
        return found

    def _walk(self) -> Iterator[None]:
        yield from self._catch_up()
        try:
            yield from self._find()
            asked = list(self._seen)
            if self._question.direction != "down":
                yield from self._climb(asked)
            if self._question.direction != "up":
                tops = self._tops() if self._question.whole else asked
                yield from self._descend(tops or asked)
        except _Reached:
            self.cut = "limit"

    def _catch_up(self) -> Iterator[None]:
        """Have everything indexed that was in the log when this was asked."""
        while not self._caught_up():
            spent = self._fill(self._meter.left)
            if not spent:
                return
            self._meter.left -= spent
            yield

    def _caught_up(self) -> bool:
        filler = self._filler
        for topic_id, target in list(self._targets.items()):
            run = filler.runs.get(topic_id)
            there = run is not None and run.next >= target
            if topic_id in filler.waiting and not (there and topic_id in filler.looked):
                return False
            del self._targets[topic_id]
        return True

    def _find(self) -> Iterator[None]:
        question = self._question
        if question.id is None:
            topic = self._log.topic(question.topic)
            hit = self._finder.at(topic, question.offset)
            hits: Hits = iter([hit])
        else:
            hits = self._finder.with_id(question.id)
        for hit in hits:
            if hit is not None:
                self._emit(hit, 0, asked=True)
            yield
        if not self._seen:
            raise UnknownEvent(str(question))

    def _climb(self, asked: list[ChainPlace]) -> Iterator[None]:
        level, generation, known = 0, asked, set[str]()
        while generation:
            level -= 1
            causes = [self._ids[place][1] for place in generation]
            generation = []
            for text in causes:
                if text is None or text in known:
                    continue
                known.add(text)
                for hit in self._finder.with_id(text):
                    if hit is not None and hit.place not in self._seen:
                        if -level > self._question.depth:
                            self.cut = "depth"
                            return
                        self._emit(hit, level)
                        generation.append(hit.place)
                    yield

    def _descend(self, tops: list[ChainPlace]) -> Iterator[None]:
        """Also through what was found on the way up, for a circle has both ways."""
        depth, known, passed = 0, set[str](), set(tops)
        generation = [(place, self._seen[place]) for place in tops]
        while generation:
            depth += 1
            causes = [(self._ids[place][0], level) for place, level in generation]
            generation = []
            for text, level in causes:
                if text in known:
                    continue
                known.add(text)
                for hit in self._finder.children(text):
                    if hit is not None and hit.place not in passed:
                        new = hit.place not in self._seen
                        if depth > self._question.depth:
                            if new:
                                self.cut = "depth"
                                return
                            continue
                        passed.add(hit.place)
                        generation.append((hit.place, level + 1))
                        if new:
                            self._emit(hit, level + 1)
                    yield

    def _tops(self) -> list[ChainPlace]:
        """What has no cause that was found."""
        ids = {id_ for id_, _ in self._ids.values()}
        return [place for place, (_, parent) in self._ids.items() if parent not in ids]

    def _emit(self, hit: Hit, level: int, *, asked: bool = False) -> None:
        if len(self._seen) >= self._question.limit:
            raise _Reached
        self._seen[hit.place] = level
        self._ids[hit.place] = (hit.id, hit.parent)
        self._found.append(ChainStep(hit, level, asked))
