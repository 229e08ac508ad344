"""VADER's compound of a text, as the package vaderSentiment computes it, but faster.

The lexicon is that of the package; a test compares the two over its texts. What a word
means is looked up once and remembered: what the lexicon says of it, whether it negates
or strengthens others. Then a text is a list of such words, and the rules of VADER look
at those that the lexicon knows, and at three words in front of each.
"""

from __future__ import annotations

import heapq
import math
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

# What a word in capitals adds among others that are not, and what turns a word round.
CAPITALS = 0.733
NEGATION = -0.74
# "never so good" is better than "so good".
NEVER_SO = 1.25
# How much a word in front strengthens, by its distance.
FADING = (1.0, 0.95, 0.9)
BEFORE_BUT, BEHIND_BUT = 0.5, 1.5
# Marks that count, what each adds, and what many question marks add.
MAX_EXCLAMATIONS, EXCLAMATION = 4, 0.292
MAX_QUESTIONS, QUESTION, MANY_QUESTIONS = 3, 0.18, 0.96
# Of the sum of all words, which becomes a number from -1 to 1.
ALPHA = 15
# Words that are remembered, and texts: what is retweeted comes again and again.
WORDS = 100_000
TEXTS = 20_000
# Of texts that are longer, in characters, neither: they would fill the memory.
MAX_REMEMBERED = 1_000
# Words of phrases that are in every other text.
_LITTLE = frozenset({"the", "to", "just"})
# Words that the rules name, and that neither strengthen nor negate.
_CHANGING = frozenset({"so", "this", "no", "least"})
# Words that make others count otherwise, wherever these stand.
_TURNING = frozenset({"but", "kind"})


@dataclass(slots=True, eq=False)
class ScoredWord:
    """What is known of one word of a text."""

    lower: str
    is_upper: bool
    valence: float | None
    """What the lexicon says; None: it does not know the word."""
    boost: float
    """How much it strengthens what follows, or weakens; 0: it does not."""
    negates: bool
    scores: bool
    """Whether it counts by itself."""
    of_idiom: bool
    """Whether it is in a phrase that counts as a whole; one word of each is."""
    matters: bool
    """Whether it may change what follows."""
    is_plain: bool
    """Whether it changes no other word, whatever stands there."""


def compound(text: str) -> float:
    """The score from -1 to 1 of a text."""
    if len(text) <= MAX_REMEMBERED:
        return remembered(text)
    return _compound(text, _word)


@lru_cache(TEXTS)
def remembered(text: str) -> float:
    """The same, of a short text."""
    return _compound(text, known_words.__getitem__)


def _compound(text: str, word_of: Callable[[str], ScoredWord]) -> float:
    text = _spelt_out(text)
    words = list(map(word_of, text.split()))
    if not any([word.scores for word in words]):
        return 0.0
    uppers = [word for word in words if word.is_upper]
    capitals_count = 0 < len(uppers) < len(words)
    if all([word.is_plain for word in words]):
        total = sum([_stressed(w, capitals_count) for w in words if w.scores])
    else:
        total = sum(weighed(words, _valences(words, capitals_count)))
    return round(_normalized(total, _emphasis(text)), 4)


def _stressed(word: ScoredWord, capitals_count: bool) -> float:
    """What a word says where no other changes it."""
    valence = word.valence or 0.0
    if capitals_count and word.is_upper:
        valence += CAPITALS if valence > 0 else -CAPITALS
    return valence


def _valences(words: Sequence[ScoredWord], capitals_count: bool) -> list[float]:
    """What each word says in its place."""
    valences = [0.0] * len(words)
    for at, word in enumerate(words):
        if word.scores and not (word.lower == "kind" and _lower(words, at + 1) == "of"):
            valences[at] = _valence(words, at, capitals_count)
    return valences


def _word(token: str) -> ScoredWord:
    """What a token of a text is."""
    lexicon, package = _lexicon(), _package()
    stripped = token.strip(string.punctuation)
    word = stripped if len(stripped) > 2 else token  # probably an emoticon
    lower = word.lower()
    valence = lexicon.get(lower)
    boost = package.BOOSTER_DICT.get(lower, 0.0)
    negates = lower in package.NEGATE or "n't" in lower
    of_idiom = lower in _idiom_words()
    matters = bool(boost) or negates or lower in _CHANGING
    return ScoredWord(
        lower=lower,
        is_upper=word.isupper(),
        valence=valence,
        boost=boost,
        negates=negates,
        scores=valence is not None and lower not in package.BOOSTER_DICT,
        of_idiom=of_idiom,
        matters=matters,
        is_plain=not (matters or of_idiom or lower in _TURNING),
    )


class _Words(dict[str, ScoredWord]):
    """Words that were met; all are forgotten when there are too many."""

    def __missing__(self, token: str) -> ScoredWord:
        if len(self) >= WORDS:
            self.clear()
        word = self[token] = _word(token)
        return word


known_words = _Words()


def _spelt_out(text: str) -> str:
    """The text with words for its emoji, and a space in front of each."""
    if text.isascii():
        return text
    emoji = _emoji()
    for one in emoji.keys() & set(text):
        words = emoji[one]
        if text[0] == one:
            text = words + text[1:]
        text = text.replace(f" {one}", f" {words}").replace(one, f" {words}")
    return text


def _valence(words: Sequence[ScoredWord], at: int, capitals_count: bool) -> float:
    """What a word of the lexicon says in its place."""
    word = words[at]
    known = word.valence
    assert known is not None, "only words of the lexicon have one"
    valence = known
    if word.lower == "no" and at + 1 < len(words) and words[at + 1].valence is not None:
        valence = 0.0
    matters = any([one.matters for one in words[max(at - 3, 0) : at]])
    if matters and _after_no(words, at):
        valence = known * NEGATION
    if word.is_upper and capitals_count:
        valence += CAPITALS if valence > 0 else -CAPITALS
    if matters or (at >= 3 and _may_be_idiom(words, at)):
        for distance in range(1, min(at, 3) + 1):
            if words[at - distance].valence is None:
                valence = _changed(words, at, distance, valence, capitals_count)
    return _least(words, at, valence) if matters else valence


def _after_no(words: Sequence[ScoredWord], at: int) -> bool:
    if _lower(words, at - 1) == "no" or _lower(words, at - 2) == "no":
        return True
    return _lower(words, at - 3) == "no" and _lower(words, at - 1) in ("or", "nor")


def _may_be_idiom(words: Sequence[ScoredWord], at: int) -> bool:
    return any([word.of_idiom for word in words[at - 3 : at + 3]])


def _changed(
    words: Sequence[ScoredWord],
    at: int,
    distance: int,
    valence: float,
    capitals_count: bool,
) -> float:
    """The valence after a look at the word that is so far in front."""
    word = words[at - distance]
    boost = word.boost
    if boost:
        if valence < 0:
            boost = -boost
        if word.is_upper and capitals_count:
            boost += CAPITALS if valence > 0 else -CAPITALS
        valence += boost * FADING[distance - 1]
    valence = _negated(words, at, distance, valence)
    if distance == 3:
        valence = _idiomatic(words, at, valence)
    return valence


def _negated(
    words: Sequence[ScoredWord], at: int, distance: int, valence: float
) -> float:
    one, two, three = (_lower(words, at - back) for back in (1, 2, 3))
    stressed = ("so", "this")
    if distance == 2:
        if two == "never" and one in stressed:
            return valence * NEVER_SO
        if two == "without" and one == "doubt":
            return valence
    if distance == 3:
        if (three == "never" and two in stressed) or one in stressed:
            return valence * NEVER_SO
        if three == "without" and "doubt" in (one, two):
            return valence
    return valence * NEGATION if words[at - distance].negates else valence


def _idiomatic(words: Sequence[ScoredWord], at: int, valence: float) -> float:
    """What a phrase says that the word is in, or stands behind."""
    if not _may_be_idiom(words, at):
        return valence
    cases, boosts = _package().SPECIAL_CASES, _package().BOOSTER_DICT
    phrase = _Phrase(words, at)
    for begin, end in ((-1, 0), (-2, 0), (-2, -1), (-3, -1), (-3, -2)):
        if (found := cases.get(phrase(begin, end))) is not None:
            valence = found
            break
    for end in (1, 2):
        if (found := cases.get(phrase(0, end))) is not None:
            valence = found
    for begin, end in ((-3, -1), (-3, -2), (-2, -1)):
        valence += boosts.get(phrase(begin, end), 0.0)
    return valence


class _Phrase:
    def __init__(self, words: Sequence[ScoredWord], at: int) -> None:
        self._words = words
        self._at = at

    def __call__(self, begin: int, end: int) -> str:
        """Words from and to there, counted from the word; none beyond the end."""
        at = self._at
        if at + end >= len(self._words):
            return ""
        part = self._words[at + begin : at + end + 1]
        return " ".join([word.lower for word in part])


def _least(words: Sequence[ScoredWord], at: int, valence: float) -> float:
    if _lower(words, at - 1) != "least" or words[at - 1].valence is not None:
        return valence
    return valence if _lower(words, at - 2) in ("at", "very") else valence * NEGATION


def weighed(words: Sequence[ScoredWord], valences: list[float]) -> list[float]:
    """Less in front of the first "but", more behind it.

    As the package does it: of equal values the first is changed, each time.
    """
    lowers = [word.lower for word in words]
    if "but" not in lowers:
        return valences
    but = lowers.index("but")
    # Places of each value, as heaps: to look for the first takes minutes in long texts.
    # 0 stays 0, and so does "but", which the lexicon does not know.
    places: dict[float, list[int]] = {}
    for at, value in enumerate(valences):
        places.setdefault(value, []).append(at)
    for at in range(len(valences)):
        value = valences[at]
        if value:
            first = heapq.heappop(places[value])
            changed = value * (BEFORE_BUT if first < but else BEHIND_BUT)
            valences[first] = changed
            heapq.heappush(places.setdefault(changed, []), first)
    return valences


def _emphasis(text: str) -> float:
    exclamations = min(text.count("!"), MAX_EXCLAMATIONS) * EXCLAMATION
    questions = text.count("?")
    if questions <= 1:
        return exclamations
    if questions <= MAX_QUESTIONS:
        return exclamations + questions * QUESTION
    return exclamations + MANY_QUESTIONS


def _normalized(total: float, emphasis: float) -> float:
    if total > 0:
        total += emphasis
    elif total < 0:
        total -= emphasis
    return total / math.sqrt(total * total + ALPHA)


def _lower(words: Sequence[ScoredWord], at: int) -> str:
    return words[at].lower if 0 <= at < len(words) else ""


@lru_cache(1)
def _lexicon() -> dict[str, float]:
    return dict(_analyzer().lexicon)


@lru_cache(1)
def _emoji() -> dict[str, str]:
    """Those of one character: the package finds no others."""
    return {key: text for key, text in _analyzer().emojis.items() if len(key) == 1}


@lru_cache(1)
def _idiom_words() -> frozenset[str]:
    """One word of every phrase: where none of them is, there is no phrase."""
    package = _package()
    phrases = [one.split() for one in (*package.SPECIAL_CASES, *package.BOOSTER_DICT)]
    return frozenset(
        next(word for word in phrase if word not in _LITTLE)
        for phrase in phrases
        if len(phrase) > 1
    )


@lru_cache(1)
def _analyzer() -> Any:
    return _package().SentimentIntensityAnalyzer()


@lru_cache(1)
def _package() -> Any:
    from vaderSentiment import vaderSentiment

    return vaderSentiment
