"""Offsets as Spark keeps them, and the options that say where to begin and to end.

As in Spark's Kafka source an offset is JSON, ``{"topic": {"0": 23}}``: the next event
to be read of each topic. -2 stands for the earliest and -1 for the latest one.

A stream's offsets have a note beside the topics, under a name that no topic has::

    {"$penstock": {"query": "3f0c…", "numbers": {"orders": 7}, "from": {"orders": 5}},
     "orders": {"0": 23}}

``query`` names the query as long as its checkpoint lives. ``numbers`` are those of the
topics: one that is deleted and made again has another, and its offsets mean other
events. ``from`` is where the batch
that ends here begins in topics in which no batch before it ended there: in all of them
if it is the first, in new ones, in those of which something was lost. Spark writes down
only where a batch ends; when it repeats one after a crash, ``latest`` is elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from penstock.errors import InvalidOption
from penstock.table.extent import Extent

EARLIEST = -2
LATEST = -1
NOTE = "$penstock"
PARTITION = "0"
# The largest offset, and the last moment in milliseconds: what 64 bits can hold.
MOST = (1 << 63) - 1
WORDS = {"earliest": EARLIEST, "latest": LATEST}
_JSON = 'JSON such as {"topic": {"0": 23}}'
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_NUMBER = re.compile(r"-?[0-9]+")
# Python refuses to read a number of thousands of digits.
_DIGITS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Where to begin or to end: by time, by offset, or by a word.

    What is said of a topic goes before what is said of all.
    """

    option: str
    word: int
    offsets: Mapping[str, int] = field(default_factory=dict)
    times_ms: Mapping[str, int] = field(default_factory=dict)
    time_ms: int | None = None

    @property
    def is_latest(self) -> bool:
        return self._is(LATEST)

    @property
    def is_earliest(self) -> bool:
        return self._is(EARLIEST)

    @property
    def topics(self) -> set[str]:
        """Topics that something is said of."""
        return {*self.offsets, *self.times_ms}

    def resolve(
        self, topic: str, extent: Extent, offset_at: Callable[[str, int], int]
    ) -> int:
        """The offset that is meant in a topic; it may lie outside the extent."""
        time_ms = self.times_ms.get(topic, self.time_ms)
        if time_ms is not None:
            return offset_at(topic, time_ms)
        offset = self.offsets.get(topic, self.word)
        if offset == EARLIEST:
            return extent.start
        return extent.end if offset == LATEST else offset

    def _is(self, word: int) -> bool:
        return self.word == word and not self.topics and self.time_ms is None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOffset:
    """Where a stream stands. ``initial``: nothing was read yet."""

    topics: Mapping[str, int]
    query: str
    numbers: Mapping[str, int] = field(default_factory=dict)
    begins: Mapping[str, int] = field(default_factory=dict)
    initial: bool = False

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> StreamOffset:
        note = document.get(NOTE, {})
        return cls(
            topics={
                topic: partitions[PARTITION]
                for topic, partitions in document.items()
                if topic != NOTE
            },
            query=note.get("query", ""),
            numbers=note.get("numbers", {}),
            begins=note.get("from", {}),
            initial=note.get("initial", False),
        )

    def document(self) -> dict[str, Any]:
        """What Spark keeps; the same text for the same offset."""
        note: dict[str, Any] = {"query": self.query}
        if self.numbers:
            note["numbers"] = dict(sorted(self.numbers.items()))
        if self.begins:
            note["from"] = dict(sorted(self.begins.items()))
        if self.initial:
            note["initial"] = True
        return {NOTE: note, **plain(self.topics)}


def plain(topics: Mapping[str, int]) -> dict[str, Any]:
    """Offsets as in Kafka's JSON, topics by name."""
    return {topic: {PARTITION: topics[topic]} for topic in sorted(topics)}


def bound_of(given: Mapping[str, str], kind: str, *, default: str) -> Bound:
    """What options with lowered names say; ``kind`` is starting or ending.

    A time for all goes before times by topic, these before offsets.
    """
    names = [f"{kind}Timestamp", f"{kind}OffsetsByTimestamp", f"{kind}Offsets"]
    time, times, offsets = (given.get(name.lower()) for name in names)
    word = WORDS[default]
    if time is not None:
        return Bound(option=names[0], word=word, time_ms=_moment(names[0], time))
    if times is not None:
        found = _of_topics(
            names[1], times, 'JSON such as {"topic": {"0": 1700000000000}}'
        )
        return Bound(option=names[1], word=word, times_ms=found)
    if offsets is None:
        return Bound(option=names[2], word=word)
    if offsets.strip().lower() in WORDS:
        return Bound(option=names[2], word=WORDS[offsets.strip().lower()])
    limit = f"earliest, latest or {_JSON}"
    found = _of_topics(names[2], offsets, limit)
    if any(offset < EARLIEST for offset in found.values()):
        raise InvalidOption(names[2], offsets, f"{limit}; -2 is earliest, -1 latest")
    return Bound(option=names[2], word=word, offsets=found)


def _of_topics(option: str, text: str, limit: str) -> dict[str, int]:
    try:
        document = json.loads(text)
    except ValueError:
        raise InvalidOption(option, text, limit) from None
    if not isinstance(document, dict):
        raise InvalidOption(option, text, limit)
    found = {}
    for topic, partitions in document.items():
        if topic == NOTE:
            continue
        if not isinstance(partitions, dict) or list(partitions) != [PARTITION]:
            raise InvalidOption(option, text, f"{limit}, of partition 0 alone")
        number = partitions[PARTITION]
        if type(number) is not int:
            raise InvalidOption(option, text, limit)
        if abs(number) > MOST:
            raise InvalidOption(option, text, f"{limit}, at most {MOST}")
        found[topic] = number
    return found


def _moment(option: str, text: str) -> int:
    """Milliseconds since 1970, as a number or as ISO 8601 (without a zone: UTC)."""
    limit = "milliseconds since 1970, or a moment such as 2026-01-31T12:00:00Z"
    if _NUMBER.fullmatch(text.strip()):
        if len(text.strip()) > _DIGITS or abs(int(text)) > MOST:
            raise InvalidOption(option, text, f"{limit}; at most {MOST}")
        return int(text)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidOption(option, text, limit) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    # The first millisecond that is not earlier: an event just before is not meant.
    return -((_EPOCH - moment) // _MILLISECOND)
