"""Statistics of the pipeline itself: percentiles over tweets, in windows of 5 seconds.

A window is of the time at which the broker stored a tweet. Batches go on in the order
of the firehose, so a window is over as soon as a batch holds a tweet of a later one, or
when nothing more comes. What of a told window comes late, because a clock was set back,
counts in the one that is open. A window without a tweet is not told; panics within it
count in the next one that has some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import ROUND_CEILING, Decimal

import msgspec

from penstock.pipeline.notes import WINDOW_MS, TimeCounts, Took

PERCENTILES = (75, 85, 95)
# Who tells it, in the text.
WORKER = "StatisticWorker spark"
LOGGER, TWEETS, USERS = "logger_stats", "tweets_stats", "users_stats"

Statistic = tuple[str, bytes]
"""A topic, and the payload of an event."""


class Window(msgspec.Struct, array_like=True):
    took: Took
    panics: int = 0


class Windows(msgspec.Struct, array_like=True):
    """Windows that are open, by their beginning; each has a tweet. Kept as JSON."""

    open: dict[int, Window] = {}
    reported_to_ms: int = 0
    """The end of the last one that is told."""

    def add(self, begin_ms: int, took: Took) -> None:
        """Add what tweets took that are of the window that begins there."""
        begin_ms = max(begin_ms, self.reported_to_ms)
        if begin_ms not in self.open:
            self.open[begin_ms] = Window(Took({}, {}, {}))
        known = self.open[begin_ms].took
        for name in took.__struct_fields__:
            times: TimeCounts = getattr(known, name)
            for ms, count in getattr(took, name).items():
                times[ms] = times.get(ms, 0) + count

    def panic(self, at_ms: int, count: int) -> None:
        """Add panics, which were before ``end_ms``."""
        begin_ms = min(begin for begin in self.open if begin + WINDOW_MS > at_ms)
        self.open[begin_ms].panics += count

    def close(self, to_ms: int) -> Iterator[Statistic]:
        """Tell the windows that end there, or before."""
        for begin_ms in sorted(self.open):
            if begin_ms + WINDOW_MS > to_ms:
                break
            self.reported_to_ms = begin_ms + WINDOW_MS
            yield from _statistics_of(begin_ms, self.open.pop(begin_ms))

    @property
    def reached_ms(self) -> int:
        """Where the last window begins: all before it are over."""
        return max(self.open, default=0)

    @property
    def end_ms(self) -> int:
        """Where the last window ends; 0 if none is open."""
        return self.reached_ms + WINDOW_MS if self.open else 0


def _statistics_of(begin_ms: int, window: Window) -> Iterator[Statistic]:
    took = window.took
    shares = _shares(took.processing)
    text = f"[{WORKER} - LoggerWorker execution time] Percentile stats {_text(shares)}"
    text += f" [{window.panics} CRASHES/5sec]"
    yield (
        LOGGER,
        _payload("processing", begin_ms, shares, "crashes", window.panics, text),
    )
    for topic, kind, times in (
        (TWEETS, "tweets", took.tweets),
        (USERS, "users", took.users),
    ):
        shares, processed = _shares(times), sum(times.values())
        text = f"[{WORKER} - Bulk `{kind}` insert stats] Execution time percentile "
        text += f"{_text(shares)} [processed={processed}]"
        yield topic, _payload(kind, begin_ms, shares, "processed", processed, text)


def _payload(
    kind: str,
    begin_ms: int,
    shares: dict[str, float],
    total: str,
    count: int,
    text: str,
) -> bytes:
    return msgspec.json.encode(
        {
            "kind": kind,
            "window_start_ms": begin_ms,
            "window_end_ms": begin_ms + WINDOW_MS,
            **shares,
            total: count,
            "text": text,
        }
    )


def _shares(times: TimeCounts) -> dict[str, float]:
    return {f"p{one}": percentile(times, one) for one in PERCENTILES}


def _text(shares: dict[str, float]) -> str:
    return " | ".join(f"{name[1:]}%={value}" for name, value in shares.items())


def percentile(times: TimeCounts, percent: int) -> float:
    """Between the two values around the rank, rounded up to two decimals.

    A single value is told as it is.
    """
    count = sum(times.values())
    rank = Decimal(percent) / 100 * (count - 1)
    below = int(rank)
    low, high = _ranked(times, below), _ranked(times, min(below + 1, count - 1))
    exact = low + (high - low) * (rank - below)
    return float(exact.quantize(Decimal("0.01"), ROUND_CEILING))


def _ranked(times: TimeCounts, rank: int) -> Decimal:
    """The value with so many in front of it."""
    for ms in sorted(times):
        rank -= times[ms]
        if rank < 0:
            return Decimal(ms)
    raise AssertionError("the rank is below the count")


def closed(windows: Windows, to_ms: int) -> dict[str, list[bytes]]:
    """What is told of windows up to there, by topic."""
    found: dict[str, list[bytes]] = {}
    for topic, payload in windows.close(to_ms):
        found.setdefault(topic, []).append(payload)
    return found


def added(windows: Windows, notes: Iterable[dict[int, Took]]) -> None:
    """Add what tasks have told of their windows."""
    for note in notes:
        for begin_ms, took in note.items():
            windows.add(begin_ms, took)
