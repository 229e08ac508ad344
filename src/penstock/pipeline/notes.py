"""What a task tells the driver of its part of a batch, beside what Spark sums up."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from penstock.pipeline.portion import Stray, TweetPortion

# Windows of the statistics.
WINDOW_MS = 5_000
# Of events that are not taken, in one note; larger ones are read from the firehose.
MAX_RAW_BYTES = 1 << 20
# Times from a second on are told in three digits, and those from 100 seconds on in two,
# so that there are few different ones: they are kept in the note of a feed.
FINE_MS, FINE_DIGITS, COARSE_DIGITS = 100_000, 3, 2

TimeCounts = dict[int, int]
"""How many tweets took so many milliseconds."""


class Took(msgspec.Struct, array_like=True):
    """How long tweets of one window took: on their way, and in bulks of the store."""

    processing: TimeCounts = {}
    tweets: TimeCounts = {}
    users: TimeCounts = {}


class PortionNote(msgspec.Struct, frozen=True):
    windows: dict[int, Took]
    """By the time at which a window begins."""
    strays: list[Stray] = []

    def encode(self) -> str:
        return _encode(self).decode()


def note_of(
    portion: TweetPortion, written_ms: int, tweets_ms: float, users_ms: float
) -> PortionNote:
    """The note on a portion that is in the store since ``written_ms``."""
    windows: dict[int, Took] = {}
    for at_ms, count in portion.times.items():
        took = windows.setdefault(at_ms - at_ms % WINDOW_MS, Took({}, {}, {}))
        for times, ms in (
            (took.processing, written_ms - at_ms),
            (took.tweets, tweets_ms),
            (took.users, users_ms),
        ):
            rough = roughly(ms)
            times[rough] = times.get(rough, 0) + count
    return PortionNote(windows, list(_strays(portion)))


def _strays(portion: TweetPortion) -> Iterator[Stray]:
    left = MAX_RAW_BYTES
    for one in portion.strays:
        left -= len(one.raw or b"")
        yield one if left >= 0 else Stray(one.offset, one.reason)


def roughly(ms: float) -> int:
    """A time in so few digits that there are few of them; never less than 1 ms."""
    whole = max(1, round(ms))
    digits = FINE_DIGITS if whole < FINE_MS else COARSE_DIGITS
    step: int = 10 ** max(0, len(str(whole)) - digits)
    return (whole + step // 2) // step * step


def decode(text: str) -> PortionNote:
    return _decode(text)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(PortionNote).decode
