"""Batches of a topic that deliveries are made from, shared by all subscriptions.

A page is one frame of the log with its columns decoded once, however many subscribers
want it. The cache is bounded by bytes: a slow subscriber reads its part of the topic
again, it does not keep it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from typing import Self

from penstock.log import Batch, BrokerLog, Column, Columns, LonePart

# One block of an old backlog.
READ_BYTES = 1 << 18
# What a page costs besides the bytes of its frame.
_OVERHEAD_BYTES = 1 << 10
# Decoded columns and rendered lines take about this many times the frame.
_COST_FACTOR = 3


class Page:
    """All events of one frame; columns are decoded when first asked for.

    Or small events that have just come: their columns are at hand, and it is the frame
    that is made when it is asked for.
    """

    __slots__ = (
        "_batch",
        "_common",
        "_expires",
        "_headers",
        "_ids",
        "_keys",
        "_not_before",
        "_part",
        "_payloads",
        "_priorities",
        "_producers",
        "base",
        "count",
        "dense",
        "end",
        "rendered",
        "singles",
        "size",
        "topic",
    )

    _batch: Batch | None
    _part: LonePart | None

    def __init__(self, batch: Batch) -> None:
        header = batch.header
        self._begin(batch.topic, header.base_offset, header.end_offset, header.length)
        self._batch = batch
        self.count = header.events
        self.dense = batch.dense

    @classmethod
    def of_part(cls, topic: str, part: LonePart) -> Self:
        """A page of small events of a topic that have just come."""
        page = cls.__new__(cls)
        page._begin(topic, part.base_offset, part.end_offset, part.size)
        page._part = part
        page.count = page.end - page.base
        page.dense = True
        columns = part.columns
        page._expires, page._not_before = columns.expires, columns.not_before
        page.take_over(columns)
        return page

    def _begin(self, topic: str, base: int, end: int, size: int) -> None:
        self._batch = None
        self._part = None
        self.topic = topic
        self.base = base
        self.end = end
        self.size = size
        """About how many bytes its events have."""
        self.rendered: dict[str, list[bytes]] = {}
        """What gateways made of the events, by protocol."""
        self.singles = 0
        """How often a single event was rendered."""
        self._common: dict[str, str] | None | bool = False
        self._expires: list[int] | None | bool = False
        self._headers: list[dict[str, str]] | None = None
        self._keys: list[bytes | None] | None = None
        self._ids: list[str] | None = None
        self._not_before: list[int] | None | bool = False
        self._payloads: list[bytes] | None = None
        self._priorities: list[int] | None = None
        self._producers: list[str | None] | None = None

    def __len__(self) -> int:
        return self.count

    @property
    def batch(self) -> Batch:
        if self._batch is None:
            assert self._part is not None, "it is of the one or the other"
            self._batch = Batch.whole(self.topic, *self._part.frame())
        return self._batch

    @property
    def columns(self) -> Columns | None:
        """All columns, if they are at hand; not to be changed."""
        return None if self._part is None else self._part.columns

    def offset_of(self, index: int) -> int:
        return self.base + index if self.dense else self.batch.offset_of(index)

    def index_of(self, offset: int) -> int:
        """Index of the first event at or behind ``offset``."""
        if self.dense:
            return min(max(offset - self.base, 0), self.count)
        return self.batch.index_of(offset)

    @property
    def event_bytes(self) -> int:
        """About how many bytes an event has."""
        return max(self.size // self.count, 1)

    @property
    def ids(self) -> list[str]:
        if self._ids is None:
            part = self._part
            self._ids = self.batch.ids() if part is None else part.ids()
        return self._ids

    @property
    def common_headers(self) -> dict[str, str] | None:
        """Headers that all events have, if the frame says so; not to be changed."""
        if isinstance(self._common, bool):
            self._common = self.batch.common_headers()
        return self._common

    @property
    def has_headers(self) -> bool:
        """Whether any event may have headers."""
        columns = self.columns
        if columns is None:
            return Column.HEADERS in self.batch.columns()
        return columns.headers is not None

    @property
    def has_priorities(self) -> bool:
        """Whether any event may have a priority."""
        columns = self.columns
        if columns is None:
            return Column.PRIORITY in self.batch.columns()
        return columns.priorities is not None

    @property
    def headers(self) -> list[dict[str, str]]:
        if self._headers is None:
            self._headers = self.batch.headers()
        return self._headers

    @property
    def keys(self) -> list[bytes | None]:
        if self._keys is None:
            self._keys = self.batch.keys()
        return self._keys

    @property
    def payloads(self) -> list[bytes]:
        if self._payloads is None:
            self._payloads = self.batch.payloads()
        return self._payloads

    def take_over(self, columns: Columns) -> None:
        """Take what the frame was made of: the lists must not change any more."""
        self._payloads = columns.payloads
        self._expires, self._not_before = columns.expires, columns.not_before
        headers = columns.headers
        if headers is None:
            self._common = {}
        elif headers.count(headers[0]) == len(headers):
            self._common = dict(headers[0])
        else:
            self._common, self._headers = None, [dict(one) for one in headers]

    @property
    def priorities(self) -> list[int]:
        if self._priorities is None:
            columns = self.columns
            if columns is None:
                self._priorities = self.batch.priorities()
            else:
                self._priorities = columns.priorities or [0] * self.count
        return self._priorities

    @property
    def producers(self) -> list[str | None]:
        if self._producers is None:
            self._producers = self.batch.producers()
        return self._producers

    @property
    def expires(self) -> list[int] | None:
        """When each event expires, 0 for never; None if no event of the page does."""
        if isinstance(self._expires, bool):
            self._expires = self.batch.given("expires")
        return self._expires

    @property
    def not_before(self) -> list[int] | None:
        """From when on each may be delivered, 0 for at once; None if all may."""
        if isinstance(self._not_before, bool):
            self._not_before = self.batch.given("not_before")
        return self._not_before

    @property
    def cost(self) -> int:
        return self.size * _COST_FACTOR + _OVERHEAD_BYTES


class Pages:
    """The pages read lately, oldest out first."""

    def __init__(self, log: BrokerLog, max_bytes: int) -> None:
        self._log = log
        self._max_bytes = max_bytes
        self._bytes = 0
        self._pages: OrderedDict[tuple[str, int], Page] = OrderedDict()
        self._bases: dict[str, list[int]] = {}

    def at(self, topic: str, offset: int) -> Page | None:
        """The page that holds ``offset`` or the next event behind; None at the end."""
        found = self._cached(topic, offset)
        if found is not None:
            return found
        owner = self._log.topic(topic)
        offset = max(offset, owner.start_offset)
        if offset >= owner.end_offset:
            return None
        while batches := owner.whole_batches(offset, READ_BYTES):
            pages = [self._keep(topic, Page(batch)) for batch in batches]
            for page in pages:
                if page.index_of(offset) < len(page):
                    return page
            offset = pages[-1].end
        return None

    def add(self, batch: Batch, columns: Columns | None) -> None:
        """Keep a frame that was just committed: it is about to be wanted.

        What is at hand in columns needs no decoding.
        """
        page = self._keep(batch.topic, Page(batch))
        if columns is not None:
            page.take_over(columns)

    def add_part(self, topic: str, part: LonePart) -> None:
        """The same for small events that shared a frame with those of others."""
        self._keep(topic, Page.of_part(topic, part))

    def end(self, topic: str) -> int:
        """Behind the last event of a topic that can be read."""
        return self._log.topic(topic).end_offset

    def start(self, topic: str) -> int:
        """The first event of a topic that retention has left."""
        return self._log.topic(topic).start_offset

    def relaxed(self, topic: str) -> bool:
        """Whether the events of a topic are written without a sync."""
        return self._log.topic(topic).options.durability == "os"

    def buries_expired(self, topic: str) -> bool:
        """Whether events of a topic that expire undelivered are dead letters."""
        return self._log.topic(topic).options.dead_letter_expired

    def forget(self, topic: str) -> None:
        """Drop the pages of a topic that was deleted or changed."""
        for base in self._bases.pop(topic, ()):
            self._bytes -= self._pages.pop((topic, base)).cost

    def _cached(self, topic: str, offset: int) -> Page | None:
        bases = self._bases.get(topic)
        if not bases:
            return None
        at = bisect_right(bases, offset) - 1
        if at < 0:
            return None
        page = self._pages[topic, bases[at]]
        if offset >= page.end or page.index_of(offset) >= len(page):
            return None
        return page

    def _keep(self, topic: str, page: Page) -> Page:
        key = (topic, page.base)
        known = self._pages.get(key)
        if known is not None and known.end >= page.end:
            return known
        bases = self._bases.setdefault(topic, [])
        # Small frames of which there are pages may be gathered into this one by now.
        low = bisect_left(bases, page.base)
        high = bisect_left(bases, page.end, low)
        for base in bases[low:high]:
            self._bytes -= self._pages.pop((topic, base)).cost
        bases[low:high] = [page.base]
        self._pages[key] = page
        self._bytes += page.cost
        while self._bytes > self._max_bytes and len(self._pages) > 1:
            self._drop_oldest()
        return page

    def _drop_oldest(self) -> None:
        (topic, base), page = self._pages.popitem(last=False)
        self._bytes -= page.cost
        bases = self._bases[topic]
        del bases[bisect_right(bases, base) - 1]
        if not bases:
            del self._bases[topic]
