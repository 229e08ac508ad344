"""What passed through the broker: a few additions per batch, and a slot a second.

Commits and deliveries are counted where they are handled anyway, whole batches at a
time. Once a second ``tick`` puts the counts of that second aside, so that a reader
knows how it was lately; nothing else is done while there is no reader.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from heapq import nlargest
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from penstock.delivery.owed import Portion
from penstock.delivery.subscription import Subscription
from penstock.log import Batch, Column, GroupCommit

if TYPE_CHECKING:
    from penstock.tracing.spans import Tracing

SLOT_S = 1.0
# Slots that are kept: of all together, of each topic, and of each subscription.
HISTORY = 60
SPARK = 30
# Rates are over so many slots.
RECENT = 5
# Topics, and subscriptions, of one slot that are kept: the busiest.
MAX_NAMES = 5_000
# The latest syncs, of which percentiles are told.
SYNCS = 256
# Upper bounds of the buckets that syncs are counted in, in seconds.
SYNC_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)

CountedName = TypeVar("CountedName", str, int)


class Slot(NamedTuple):
    """About a second: how long it was, and what passed."""

    seconds: float
    stored: int
    stored_bytes: int
    sent: int
    sent_bytes: int
    commits: int


class Rates(NamedTuple):
    """What passed in a second, lately."""

    stored: float
    stored_bytes: float
    sent: float
    sent_bytes: float
    commits: float


class Traffic:
    """Totals since the start, and the last slots. Penstock's own topics count not."""

    __slots__ = (
        "_began",
        "_by_subscription",
        "_by_topic",
        "_mark",
        "began_s",
        "buckets",
        "commits",
        "failed_commits",
        "failed_logins",
        "refused_logins",
        "sent",
        "sent_bytes",
        "slots",
        "stored",
        "stored_bytes",
        "sync_s",
        "syncs",
        "takers",
        "ticks",
        "topics",
        "tracing",
    )

    def __init__(self, now_s: float) -> None:
        self.began_s = now_s
        self.stored = self.stored_bytes = self.sent = self.sent_bytes = 0
        self.commits = self.failed_commits = 0
        self.failed_logins: Counter[str] = Counter()
        """By gateway."""
        self.refused_logins: Counter[str] = Counter()
        """Without a look at the password: too many have failed, or wait."""
        self.syncs: deque[float] = deque(maxlen=SYNCS)
        """How long the latest took."""
        self.sync_s = 0.0
        """How long all of them took."""
        self.buckets = [0] * (len(SYNC_BUCKETS) + 1)
        """How many took no longer than each of the bounds, and longer than all."""
        self.ticks = 0
        self.slots: deque[Slot] = deque(maxlen=HISTORY)
        self.topics: deque[dict[str, int]] = deque(maxlen=SPARK)
        """Events stored in each slot, by topic."""
        self.takers: deque[dict[int, int]] = deque(maxlen=RECENT)
        """Events sent in each slot, by the number of the subscription."""
        self._by_topic: dict[str, int] = {}
        self._by_subscription: dict[int, int] = {}
        self.tracing: Tracing | None = None
        """Told of deliveries, if they are traced."""
        self._began = now_s
        self._mark = (0, 0, 0, 0, 0)

    # Counting

    def committed(self, commit: GroupCommit) -> None:
        """A group has ended: what it holds is stored, unless it failed."""
        if commit.error is not None:
            self.failed_commits += 1
            return
        self.commits += 1
        by_topic = self._by_topic
        stored = stored_bytes = 0
        for topic, events, size in commit.counts():
            name = topic.name
            if name[0] != "$":
                stored += events
                stored_bytes += size
                by_topic[name] = by_topic.get(name, 0) + events
        self.stored += stored
        self.stored_bytes += stored_bytes

    def took(
        self, subscription: Subscription, portions: list[Portion], now_s: float
    ) -> None:
        """Events go to a consumer. Their bytes are those of their neighbours."""
        if subscription.cursor.plain:
            count = size = 0
            for portion in portions:
                events, page = portion.hi - portion.lo, portion.page
                count += events
                size += page.size * events // page.count
        else:  # a portion each
            count, page = len(portions), portions[-1].page
            size = page.size * count // page.count
        self.sent += count
        self.sent_bytes += size
        number, taken = subscription.number, self._by_subscription
        taken[number] = taken.get(number, 0) + count
        if self.tracing is not None:
            who, topic = subscription.subscriber, subscription.topic
            self.tracing.delivered(who, topic, _traced(portions), now_s)

    def synced(self, seconds: float) -> None:
        """A commit took so long to be on disk."""
        self.syncs.append(seconds)
        self.sync_s += seconds
        self.buckets[bisect_left(SYNC_BUCKETS, seconds)] += 1

    def tick(self, now_s: float) -> None:
        """Begin another slot if this one is over."""
        seconds = now_s - self._began
        if 0 <= seconds < SLOT_S:
            return
        self._began = now_s
        if seconds < 0:  # the clock was set
            seconds = SLOT_S
        before = self._mark
        self._mark = now = (
            *(self.stored, self.stored_bytes, self.sent, self.sent_bytes),
            self.commits,
        )
        passed = [after - count for after, count in zip(now, before, strict=True)]
        self.slots.append(Slot(seconds, *passed))
        self.topics.append(_busiest(self._by_topic))
        self.takers.append(_busiest(self._by_subscription))
        self._by_topic, self._by_subscription = {}, {}
        self.ticks += 1

    # Telling

    @property
    def recent_s(self) -> float:
        """How long the slots together were that rates are over."""
        return sum(slot.seconds for slot in self._recent()) or SLOT_S

    def rates(self) -> Rates:
        recent, seconds = self._recent(), self.recent_s
        sums = [sum(column) for column in zip(*recent, strict=True)] or [0] * 6
        return Rates(*(round(one / seconds, 1) for one in sums[1:]))

    def stored_by_topic(self) -> dict[str, float]:
        """Events a second of the topics that got any lately."""
        return _rates(list(self.topics)[-RECENT:], self.recent_s)

    def sent_by_subscription(self) -> dict[int, float]:
        """Events a second of the subscriptions that took any lately."""
        return _rates(self.takers, self.recent_s)

    def spark(self, topic: str) -> list[float]:
        """Events a second that a topic got in the last slots."""
        slots = list(self.slots)[-len(self.topics) :]
        return [
            round(counts.get(topic, 0) / slot.seconds, 1)
            for slot, counts in zip(slots, self.topics, strict=True)
        ]

    def sync_ms(self, *shares: float) -> list[float]:
        """How long the latest syncs took: these shares of them no longer."""
        if not self.syncs:
            return [0.0 for _ in shares]
        ordered, last = sorted(self.syncs), len(self.syncs) - 1
        return [round(ordered[round(share * last)] * 1000, 3) for share in shares]

    def _recent(self) -> list[Slot]:
        return list(self.slots)[-RECENT:]


def _traced(
    portions: Iterable[Portion],
) -> Iterator[tuple[int, int, dict[str, str], int]]:
    """Offset, timestamp, headers and try of the events that have headers."""
    for one in portions:
        whole = one.page.batch
        if Column.HEADERS in whole.columns():
            part = Batch(whole.topic, whole.body, whole.header, one.lo, one.hi)
            rows = zip(part.offsets(), part.timestamps(), part.headers(), strict=True)
            yield from ((*row, one.tries) for row in rows)


def _busiest(counts: dict[CountedName, int]) -> dict[CountedName, int]:
    if len(counts) <= MAX_NAMES:
        return counts
    return dict(nlargest(MAX_NAMES, counts.items(), key=lambda one: one[1]))


def _rates(
    slots: Iterable[dict[CountedName, int]], seconds: float
) -> dict[CountedName, float]:
    found: dict[CountedName, int] = {}
    for counts in slots:
        for name, count in counts.items():
            found[name] = found.get(name, 0) + count
    return {name: round(count / seconds, 1) for name, count in found.items()}
