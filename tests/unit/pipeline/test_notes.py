"""What a task tells the driver."""

from __future__ import annotations

import pytest

from penstock.pipeline import notes
from penstock.pipeline.notes import PortionNote, Took, decode, note_of, roughly
from penstock.pipeline.portion import Stray, TweetPortion


@pytest.mark.parametrize(
    ("ms", "told"),
    [
        (-3, 1),
        (0, 1),
        (0.2, 1),
        (1.4, 1),
        (999, 999),
        (1000, 1000),
        (1004, 1000),
        (1005, 1010),
        (12_349, 12_300),
        (99_951, 100_000),
        (123_400, 120_000),
        (125_000, 130_000),
        (86_400_000, 86_000_000),
    ],
)
def test_long_times_are_told_in_few_digits(ms: float, told: int) -> None:
    assert roughly(ms) == told


def test_tweets_are_told_by_the_window_in_which_they_came() -> None:
    found = TweetPortion()
    found.times.update({4_999: 2, 5_000: 1, 5_007: 3, 9_999: 1})

    note = note_of(found, 10_000, tweets_ms=3.6, users_ms=2.2)

    assert note.windows == {
        0: Took({5_000: 2}, {4: 2}, {2: 2}),
        5_000: Took({5_000: 1, 4_990: 3, 1: 1}, {4: 5}, {2: 5}),
    }


def test_small_strays_are_told_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes, "MAX_RAW_BYTES", 5)
    strays = [Stray(7, "why", b"abc"), Stray(9, "why", b"de"), Stray(11, "why", b"f")]

    note = note_of(TweetPortion(strays=strays), 0, 0, 0)

    assert note.strays == [
        Stray(7, "why", b"abc"),
        Stray(9, "why", b"de"),
        Stray(11, "why", None),
    ]


def test_a_note_is_what_it_was() -> None:
    note = PortionNote(
        {5_000: Took({17: 2}, {3: 2}, {1: 2})}, [Stray(1, "ü", b"\xff\0")]
    )

    assert decode(note.encode()) == note
