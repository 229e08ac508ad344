"""Where in a topic the events of each priority level are.

Delivery by priority needs, per level, the next event at or behind an offset. A list of
all offsets would grow with the backlog; this index keeps, per level, the numbers of
the blocks (of BLOCK offsets) that hold it, two bytes per thousand events or so, and
reads a block's priorities when a consumer gets there. The lists of the newest block are
kept up as events arrive; those of some older ones are remembered.

A topic has no index until its first event with a priority: then everything in front
of that event is of level 0.

Crash promise: rebuilt from the topic, from the last checkpoint on.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from itertools import groupby

from penstock.delivery.pages import Pages
from penstock.log import Batch, Column

BLOCK = 4096
# Lists of old blocks remembered per topic: one per level is what a reader needs.
_REMEMBERED = 512


class Levels:
    """The index of one topic that has seen a priority."""

    __slots__ = ("_lists", "_newest", "_pages", "_topic", "blocks", "end", "first")

    def __init__(self, topic: str, pages: Pages, first: int) -> None:
        self._topic = topic
        self._pages = pages
        self.first = first
        """Every event in front of this offset is of level 0."""
        self.end = first
        """Events from here on are not in the index yet."""
        self.blocks: dict[int, array[int]] = {}
        self._newest: dict[int, list[int]] = {}
        self._lists: OrderedDict[tuple[int, int], array[int]] = OrderedDict()

    def levels(self) -> list[int]:
        """Levels that occur, highest first; 0 always does."""
        return sorted(self.blocks.keys() | {0}, reverse=True)

    def add(self, batch: Batch) -> None:
        """Take up a batch that follows those before."""
        if batch.header.base_offset < self.end:
            batch = batch.since(self.end)
        for (block, level), run in groupby(
            zip(batch.offsets(), batch.priorities(), strict=True),
            lambda pair: (pair[0] // BLOCK, pair[1]),
        ):
            self._add(level, block, [offset for offset, _ in run])
        self.end = batch.header.end_offset

    def next_at(self, level: int, offset: int) -> int | None:
        """The first event of ``level`` at or behind ``offset``."""
        if level == 0 and offset < self.first:
            return offset
        blocks = self.blocks.get(level)
        if blocks is None:
            return None
        for number in blocks[bisect_left(blocks, offset // BLOCK) :]:
            offsets = self._offsets(level, number)
            at = bisect_left(offsets, offset)
            if at < len(offsets):
                return offsets[at]
        return None

    def _add(self, level: int, block: int, offsets: list[int]) -> None:
        blocks = self.blocks.setdefault(level, array("Q"))
        if not blocks or blocks[-1] != block:
            blocks.append(block)
            self._newest[level] = []
        elif level not in self._newest:  # a block begun before the last start
            before = [o for o in self._read(level, block) if o < offsets[0]]
            self._newest[level] = before
            self._lists.pop((level, block), None)  # it grows now
        self._newest[level] += offsets

    def _offsets(self, level: int, block: int) -> Sequence[int]:
        if block == self.blocks[level][-1] and level in self._newest:
            return self._newest[level]
        found = self._lists.get((level, block))
        if found is None:
            found = self._lists[level, block] = array("Q", self._read(level, block))
            if len(self._lists) > _REMEMBERED:
                self._lists.popitem(last=False)
        return found

    def _read(self, level: int, block: int) -> list[int]:
        offset, end = max(block * BLOCK, self.first), (block + 1) * BLOCK
        found: list[int] = []
        while (page := self._pages.at(self._topic, offset)) and page.base < end:
            pairs = zip(page.batch.offsets(), page.priorities, strict=True)
            found += [o for o, p in pairs if p == level and offset <= o < end]
            offset = page.end
        return found


def has_priorities(batch: Batch) -> bool:
    """Whether any event of the batch has a priority above 0."""
    return Column.PRIORITY in batch.columns() and any(batch.priorities())
