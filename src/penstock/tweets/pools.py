"""What tweets are drawn from: people, hashtags and words, with how often each comes.

Popularity follows Zipf's law: the second comes half as often as the first, the third
a third as often. A draw is one look into a table of 65 536 entries, in which each has
its share.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from penstock.tweets.phrases import FIRST_NAMES, HASHTAGS, LAST_NAMES, PHRASES
from penstock.tweets.words import emotion_values

USERS: Final = 3000
TAGS: Final = 400
DRAWS: Final = 1 << 16
_NO_FOLLOWERS = 0.02
# Words of this value and below are hardly fit for a demonstration.
_SWEARING = -4


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """A user, as far as he does not change."""

    id: int
    screen_name: str
    name: str
    lang: str
    location: str | None
    verified: bool
    followers: int
    growth: int
    """Followers won in a thousand tweets of the stream."""
    friends: int
    created_at: str


@dataclass(frozen=True, slots=True)
class Pools:
    people: list[Person]
    tags: list[str]
    words: list[str]
    person_of: array[int]
    """Draw -> index of a person; the same for the others."""
    tag_of: array[int]
    phrase_of: list[tuple[str, str]]
    """Draw of 256 -> language and phrase."""

    @classmethod
    def of(cls, seed: int) -> Pools:
        """The same for the same seed. Raises MissingExtra."""
        random = Random(f"pools {seed}")
        words = [word for word, value in emotion_values().items() if value > _SWEARING]
        random.shuffle(words)
        return cls(
            people=[_person(index, random) for index in range(USERS)],
            tags=list(_tags(random)),
            words=words,
            person_of=zipf(USERS, 1.0),
            tag_of=zipf(TAGS, 1.1),
            phrase_of=_phrases(),
        )


def zipf(count: int, exponent: float) -> array[int]:
    """A table of draws in which entry ``i`` of ``count`` has its share, never none."""
    weights = [1 / (rank + 1) ** exponent for rank in range(count)]
    spare = DRAWS - count
    scale = spare / sum(weights)
    table = array("H")
    done = 0.0
    for rank, weight in enumerate(weights):
        done += weight * scale
        table.extend([rank] * (round(done) + rank + 1 - len(table)))
    return table


def _person(index: int, random: Random) -> Person:
    first, last = random.choice(FIRST_NAMES), random.choice(LAST_NAMES)
    plain = f"{first}{last}".encode("ascii", "ignore").decode().replace("'", "")
    followers = int(random.lognormvariate(5.5, 2.0))
    if random.random() < _NO_FOLLOWERS:
        followers = 0
    day, year = random.randrange(1, 28), random.randrange(2007, 2021)
    return Person(
        id=100_000_000 + index * 7919 + random.randrange(7919),
        screen_name=f"{plain[:10]}_{index}",
        name=f"{first} {last}",
        lang=random.choice([*PHRASES, *["en"] * 8]),
        location=random.choice([None, None, "Chișinău", "London", "São Paulo", "東京"]),
        verified=random.random() < 0.02,
        followers=followers,
        growth=random.choice([0, 0, 0, 1, 3]) if followers else 0,
        friends=int(random.lognormvariate(5.0, 1.2)),
        created_at=f"Mon Mar {day:02} 09:{day:02}:11 +0000 {year}",
    )


def _tags(random: Random) -> Sequence[str]:
    made = dict.fromkeys(HASHTAGS)
    while len(made) < TAGS:
        tail = random.choice([*LAST_NAMES, *map(str, range(2010, 2031))])
        made.setdefault(f"{random.choice(HASHTAGS)}{tail.replace(chr(39), '')}")
    return list(made)


def _phrases() -> list[tuple[str, str]]:
    """Three quarters of 256 are of the first language, in turn."""
    (first, own), *others = PHRASES.items()
    table = [(first, own[turn % len(own)]) for turn in range(192)]
    foreign = [(lang, phrase) for lang, phrases in others for phrase in phrases]
    return table + [foreign[turn % len(foreign)] for turn in range(64)]
