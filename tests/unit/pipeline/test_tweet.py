"""What is a tweet, and what is none."""

from __future__ import annotations

import json

import pytest

from penstock.pipeline.tweet import (
    DEPTH,
    LONG_ID,
    MAX_TEXT_BYTES,
    NO_RETWEET,
    NO_TWEET,
    TOO_DEEP,
    TOO_LARGE,
    UNFIT,
    Unfit,
    read,
)
from penstock.store.documents import MAX_DOCUMENT_BYTES, MAX_KEY_BYTES
from tests.unit.pipeline.tweets import nested, payload, taken, tweet


def test_a_retweeted_tweet_is_a_tweet_of_its_own_however_deep_it_lies() -> None:
    found = read(payload(nested(DEPTH))).tweets

    assert [one.id_str for one in found] == [str(depth) for depth in range(DEPTH + 1)]
    assert found[DEPTH].author.id_str == f"user of {DEPTH}"


def test_when_it_was_sent_is_told_in_milliseconds() -> None:
    assert read(payload(tweet("1"), at=17)).at_ms == 1017
    assert read(
        b'{"message":{"tweet":%b}}' % json.dumps(tweet("1")).encode()
    ).at_ms is (None)


@pytest.mark.parametrize(
    ("entities", "tags"),
    [
        ({"hashtags": [{"text": "b"}, {"text": "a"}, {"text": "b"}]}, ["b", "a", "b"]),
        ({"hashtags": [{}, None]}, [None, None]),
        ({"hashtags": None}, None),
        ({}, None),
        (None, None),
    ],
)
def test_hashtags_are_those_of_the_entities(entities: object, tags: object) -> None:
    assert taken(tweet("1", entities=entities)).hashtags == tags


INSIDE = tweet("2", retweeted_status={"text": "without an id"})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"text": "nobody's"}, NO_TWEET),
        ({"id_str": "1", "retweeted_status": tweet("2")}, NO_TWEET),
        (None, NO_TWEET),
        (nested(DEPTH + 1), TOO_DEEP),
        (nested(DEPTH + 3), TOO_DEEP),
        (tweet("1", retweeted_status={}), NO_RETWEET),
        (tweet("1", retweeted_status={"id_str": "2"}), NO_RETWEET),
        (tweet("1", retweeted_status=INSIDE), NO_RETWEET),
        (tweet("i" * (MAX_KEY_BYTES + 1)), LONG_ID),
        (tweet("\0" * 342), LONG_ID),
        (tweet("1", user="ü" * 513), LONG_ID),
        (tweet("1", retweeted_status=tweet("2", user="u" * 2000)), LONG_ID),
        (tweet("1", text="x" * MAX_TEXT_BYTES), TOO_LARGE),
        (tweet("1", retweeted_status=tweet("2", lang="x" * (1 << 20))), TOO_LARGE),
        (tweet("1", entities={"hashtags": [{}] * 70_000}), TOO_LARGE),
        (tweet("1", favorite_count=1 << 63), UNFIT),
        (tweet("1", favorite_count=1.5), UNFIT),
        (tweet("1", text=17), UNFIT),
        (tweet("1", entities=[]), UNFIT),
    ],
)
def test_an_event_that_is_no_tweet_or_fits_no_store_is_unfit(
    given: object, why: str
) -> None:
    with pytest.raises(Unfit) as caught:
        read(payload(given))

    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"{}", NO_TWEET),
        (b'{"message":null}', NO_TWEET),
        (b'{"message":{"delete":1}}', NO_TWEET),
        (b'{"message": panic}', UNFIT),
        (b"[]", UNFIT),
        (b'{"message":{"tweet":{"text":"\\ud800"}}}', UNFIT),
        (b'{"message":{"tweet":{"text":"\xff"}}}', UNFIT),
        (b'{"message":' + b'{"tweet":' * 100_000, UNFIT),
        (b'{"message":{"tweet":' + b'{"retweeted_status":' * 100_000, UNFIT),
        (b"", UNFIT),
    ],
)
def test_an_event_of_another_kind_is_unfit(data: bytes, why: str) -> None:
    with pytest.raises(Unfit) as caught:
        read(data)

    assert str(caught.value) == why


@pytest.mark.parametrize(
    "given",
    [
        tweet("1"),
        nested(DEPTH),
        tweet("i" * MAX_KEY_BYTES),
        tweet("1", user="ü" * 512),
        tweet("1", text="\1" * (MAX_TEXT_BYTES - 100)),
        tweet("1", favorite_count=(1 << 63) - 1),
        tweet("1", unknown={"to": "us"}),
    ],
)
def test_what_is_within_the_limits_is_taken(given: dict[str, object]) -> None:
    assert taken(given).id_str == given["id_str"]


def test_what_fits_is_within_the_limit_of_documents() -> None:
    # Four times in its document, each byte as one of six.
    assert 4 * 6 * MAX_TEXT_BYTES < MAX_DOCUMENT_BYTES / 2
