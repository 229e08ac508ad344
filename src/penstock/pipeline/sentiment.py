"""Sentiment of a text: the mean of its words in AFINN. VADER is in vader.py."""

from __future__ import annotations

from penstock.tweets.words import emotion_values

# What is deleted from a text before it is split.
SIGNS = ".,?/:;!|"


def words_of(text: str | None) -> list[str]:
    """What stands between spaces, as it is written: ``Good`` is not ``good``."""
    text = text or ""
    for sign in SIGNS:
        if sign in text:  # most texts have one or two of them
            text = text.replace(sign, "")
    words = text.split(" ")
    return [word for word in words if word] if "" in words else words


def values_of(words: list[str]) -> list[int]:
    """What AFINN says of each word; 0 if it does not know it.

    Its list has 14 entries with spaces, which are never found.
    """
    value_of = emotion_values().get
    return [value_of(word, 0) for word in words]


def mean(values: list[int]) -> float | None:
    """Of no words there is none."""
    return sum(values) / len(values) if values else None
