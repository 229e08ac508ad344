from __future__ import annotations

from collections import Counter

import pytest

from penstock.tweets.pools import DRAWS, TAGS, USERS, Pools, zipf


def test_the_first_come_most_often_and_all_come() -> None:
    table = zipf(100, 1.0)
    counts = Counter(table)

    assert len(table) == DRAWS
    assert sorted(counts) == list(range(100))
    assert [counts[rank] for rank in range(100)] == sorted(
        counts.values(), reverse=True
    )
    assert 1.9 < counts[0] / counts[1] < 2.1


@pytest.mark.slow
def test_pools_are_the_same_for_the_same_seed() -> None:
    assert Pools.of(3) == Pools.of(3)
    assert Pools.of(3).people != Pools.of(4).people


def test_people_differ() -> None:
    people = Pools.of(1).people

    assert len({person.id for person in people}) == USERS
    assert len({person.screen_name for person in people}) == USERS
    assert all(person.screen_name.isascii() for person in people)
    followers = sorted(person.followers for person in people)
    assert followers[0] == 0
    assert followers[USERS // 2] < 1000 < 10_000 < followers[-1]
    assert any(person.growth for person in people)
    assert not any(person.growth for person in people if not person.followers)


def test_tags_differ() -> None:
    tags = Pools.of(1).tags

    assert len(set(tags)) == len(tags) == TAGS
    assert all(tag.isalnum() for tag in tags)


def test_most_phrases_are_of_the_first_language() -> None:
    languages = Counter(lang for lang, _ in Pools.of(1).phrase_of)

    assert languages.total() == 256
    assert languages["en"] == 192
    assert len(languages) == 8
