"""VADER of our own says what the package says."""

from __future__ import annotations

import ast
import inspect
import json
import random
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import pytest
from vaderSentiment import vaderSentiment

from penstock.pipeline.vader import (
    MAX_REMEMBERED,
    compound,
    known_words,
    remembered,
    weighed,
)
from penstock.tweets.generator import Generator

ROUNDS = 2_000
# Words that rules are about, beside those of the lists.
SPECIAL = (
    *("so", "this", "never", "without", "doubt", "least", "at", "very", "no", "or"),
    *("nor", "but", "kind", "of", "sort", "just", "enough", "the", "cat", "Walks"),
)
SIGNS = (":)", ":(", "!!", "??", "...", "!!!", "????", ":D")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "I love it!",
        "VADER is not smart, handsome, nor funny.",
        "VADER is VERY SMART, uber handsome, and FRIGGIN FUNNY!!!",
        "The plot was good, but the characters are uncompelling and the dialog is bad",
        "At least it isn't a horrible book.",
        "Without a doubt, an excellent idea.",
        "never so good, never this bad, least liked, the least liked",
        "Catch utf-8 emoji such as 💘 and 💋 and 😁",
        "😁😁 x😁",
        "no good, no or bad, no nor bad ideas",
        "kind of good, sort of bad, just enough love",
        "the shit and a bad ass kiss of death to die for, yeah right",
        "but but good but good",
        "good but good good but bad bad",
        ":) and :D",
        "What??? Good???? Bad?!?!",
        "\N{ZERO WIDTH SPACE}good\u2028bad",
    ],
)
def test_a_text_has_the_score_of_the_package(text: str) -> None:
    assert compound(text) == theirs(text)


def test_all_texts_of_the_package_have_its_scores() -> None:
    """Those that it shows how it works with, and all others that are in its source."""
    texts = {
        node.value
        for node in ast.walk(ast.parse(inspect.getsource(vaderSentiment)))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }

    assert "VADER is not smart, handsome, nor funny." in texts
    assert different(texts) == []


@pytest.mark.slow
def test_every_word_of_the_package_has_its_score_wherever_it_stands() -> None:
    texts = [
        f"{word} x{word} but not {word}?" for word in (*lexicon(), *analyzer().emojis)
    ]

    assert len(texts) > 10_000
    assert different(texts) == []


@pytest.mark.slow
def test_what_changes_other_words_does_so_at_every_distance() -> None:
    changing = (
        *vaderSentiment.BOOSTER_DICT,
        *vaderSentiment.NEGATE,
        *vaderSentiment.SPECIAL_CASES,
        *vaderSentiment.SENTIMENT_LADEN_IDIOMS,
        *SPECIAL,
    )
    texts = [
        text.format(first, second, between)
        for first in (*changing, *map(str.upper, changing))
        for second in ("good", "bad", "GREAT")
        for between in ("", "it ", "is it ", "so is it ")
        for text in ("{0} {2}{1}", "we {0} {2}{1} {0} {1}")
    ]

    assert different(texts) == []


@pytest.mark.slow
def test_tweets_as_they_are_generated_have_its_scores() -> None:
    texts = set(tweets(seed=5, count=2_000))

    assert len(texts) > 1_000
    assert different(texts) == []


@pytest.mark.slow
def test_texts_made_of_what_rules_are_about_have_its_scores() -> None:
    rng = random.Random(17)
    for _ in range(ROUNDS):
        text = " ".join(word(rng) for _ in range(rng.randrange(14)))
        assert compound(text) == theirs(text), text


def test_long_texts_are_not_searched_for_every_word() -> None:
    """Of 256 KiB that would take a minute."""
    words = [known_words[token] for token in ["good"] * 1000 + ["but"]]
    valences: list[float] = [Compared(1.9) for _ in words[:-1]]

    found = weighed(words, [*valences, 0.0])

    assert found == [0.95] * 1000 + [0.0]
    assert Compared.times < 10 * len(words)


class Compared(float):
    """Knows how often one of them was compared."""

    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return float(self) == other

    __hash__ = float.__hash__


def test_words_and_texts_are_remembered_unless_they_are_long() -> None:
    remembered.cache_clear()
    known_words.clear()

    for _ in range(2):
        compound("good good day")
        compound("good " * (MAX_REMEMBERED // 5 + 1))
        compound("x" * (MAX_REMEMBERED + 1))

    assert remembered.cache_info()[:2] == (1, 1)
    assert sorted(known_words) == ["day", "good"]


def different(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if compound(text) != theirs(text)]


def tweets(seed: int, count: int) -> Iterator[str]:
    """Texts of made-up tweets, and of what they repeat."""
    for data in Generator(seed, 1).batch(1, count):
        with suppress(ValueError):
            tweet = json.loads(data)["message"].get("tweet")
            while tweet is not None:
                yield tweet["text"]
                tweet = tweet.get("retweeted_status")


def theirs(text: str) -> float:
    score: float = analyzer().polarity_scores(text)["compound"]
    return score


def word(rng: random.Random) -> str:
    lists = (lexicon(), *([tuple(vaderSentiment.BOOSTER_DICT)] * 2), SPECIAL, SPECIAL)
    more = (
        tuple(vaderSentiment.NEGATE),
        tuple(vaderSentiment.SPECIAL_CASES),
        tuple(analyzer().emojis),
        SIGNS,
    )
    found: str = rng.choice(rng.choice((lexicon(), *lists, *more)))
    draw = rng.random()
    if draw < 0.15:
        found = found.upper()
    elif draw < 0.25:
        found = found.title()
    return found + rng.choice(("", "", "", "!", "?", ",", "."))


@cache
def lexicon() -> tuple[str, ...]:
    return tuple(analyzer().lexicon)


@cache
def analyzer() -> Any:
    return vaderSentiment.SentimentIntensityAnalyzer()
