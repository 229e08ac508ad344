"""A tweet, its scores and its user, as documents."""

from __future__ import annotations

import json

import pytest

from penstock.pipeline.documents import (
    SIGNS,
    mean,
    tweet_document,
    user_document,
    values_of,
    words_of,
)
from penstock.pipeline.portion import engagement
from penstock.pipeline.tweet import MAX_TEXT_BYTES
from penstock.store.documents import MAX_DOCUMENT_BYTES
from penstock.tweets.words import emotion_values
from tests.unit.pipeline.tweets import Json, taken, tweet


@pytest.mark.parametrize(
    ("text", "words", "values", "score"),
    [
        ("good", ["good"], [3], 3.0),
        ("a good day", ["a", "good", "day"], [0, 3, 0], 1.0),
        ("Good good", ["Good", "good"], [0, 3], 1.5),
        ("good, bad.", ["good", "bad"], [3, -3], 0.0),
        ("  win   win  ", ["win", "win"], [4, 4], 4.0),
        ("ha!ha http://x|y;z?", ["haha", "httpxyz"], [3, 0], 1.5),
        ("catastrophic #catastrophic", ["catastrophic", "#catastrophic"], [-4, 0], -2),
        ("not good", ["not", "good"], [0, 3], 1.5),  # there is an entry "not good": -2
        ("naïve 😀", ["naïve", "😀"], [-2, 0], -1.0),
        ("good\tbad\nbad", ["good\tbad\nbad"], [0], 0.0),
        ("bad, worse: worst", ["bad", "worse", "worst"], [-3, -3, -3], -3.0),
        ("", [], [], None),
        (" .,?/:;!| ", [], [], None),
        (None, [], [], None),
    ],
)
def test_sentiment_is_the_mean_of_the_values_of_words(
    text: str | None, words: list[str], values: list[int], score: float | None
) -> None:
    assert words_of(text) == words
    assert values_of(words) == values
    assert mean(values) == score


def test_entries_with_spaces_are_the_only_ones_that_are_never_found() -> None:
    words = emotion_values()

    assert sum(" " in word for word in words) == 14
    assert [word for word in words if set(word) & set(SIGNS)] == []


@pytest.mark.parametrize(
    ("likes", "again", "followers", "score"),
    [
        (2, 1, 10, 0.3),
        (0, 0, 10, 0.0),
        (5, 2, 0, 7.0),
        (1, 1, 1, 2.0),
        (1, 0, 3, 1 / 3),
        (None, 4, 2, 2.0),
        (3, None, None, 3.0),
        ((1 << 63) - 1, (1 << 63) - 1, 0, 2.0**64),
    ],
)
def test_engagement_is_likes_and_retweets_for_each_follower(
    likes: int | None, again: int | None, followers: int | None, score: float
) -> None:
    user = {"id_str": "u", "followers_count": followers}
    one = tweet("1", favorite_count=likes, retweet_count=again) | {"user": user}

    assert engagement(taken(one)) == score


def test_a_document_has_the_tweet_and_all_of_its_scores() -> None:
    tags = {"hashtags": [{"text": "sun"}]}
    one = taken(
        tweet("7", text="good day", entities=tags, lang="en", created_at="today")
    )

    user = {
        "id_str": "u",
        "screen_name": "name of u",
        "name": None,
        "lang": None,
        "location": None,
        "followers_count": 10,
        "friends_count": None,
    }
    assert json.loads(tweet_document(one, engagement(one), 1000, is_retweet=False)) == {
        "tw_id": "7",
        "text": "good day",
        "is_retweet": False,
        "user_id": "u",
        "screen_name": "name of u",
        "created_at": "today",
        "sentiments_data": {
            "tweet_text": "good day",
            "tweet_words": ["good", "day"],
            "words_emotion_values": [3, 0],
        },
        "sentiments_score": 1.5,
        "vader_score": 0.4404,
        "engagement_data": {
            "favorite_count": 2,
            "retweet_count": 1,
            "followers_count": 10,
        },
        "engagement_score": 0.3,
        "hashtags": ["sun"],
        "at_ms": 1000,
        "original_tweet": {
            "id_str": "7",
            "text": "good day",
            "created_at": "today",
            "lang": "en",
            "favorite_count": 2,
            "retweet_count": 1,
            "hashtags": ["sun"],
            "retweeted_id": None,
            "user": user,
        },
    }
    assert json.loads(user_document(one)) == user


@pytest.mark.parametrize(
    ("text", "sentiment", "vader"), [("!", None, 0.0), (None, None, None)]
)
def test_a_document_without_words_says_null(
    text: str | None, sentiment: float | None, vader: float | None
) -> None:
    one = taken(tweet("7", text=text))

    document: Json = json.loads(
        tweet_document(one, engagement(one), None, is_retweet=True)
    )

    assert document["sentiments_score"] is sentiment
    assert document["vader_score"] == vader
    assert document["sentiments_data"]["tweet_words"] == []
    assert document["is_retweet"] is True
    assert document["at_ms"] is None


@pytest.mark.slow
@pytest.mark.parametrize("text", ["\1", "\1 ", "a ", "\1."])
def test_the_largest_tweets_fit_the_store(text: str) -> None:
    one = taken(tweet("1", text=text * ((MAX_TEXT_BYTES - 100) // len(text))))

    document = tweet_document(one, engagement(one), 0, is_retweet=False)

    assert len(document) < MAX_DOCUMENT_BYTES


@pytest.mark.parametrize("tag", [{"text": "\1"}, {"text": ""}, {}, None])
def test_a_tweet_of_nothing_but_tags_fits_the_store(tag: Json | None) -> None:
    many = (MAX_TEXT_BYTES - 100) // 5  # as the longest of them are counted: null
    one = taken(tweet("1", text="", entities={"hashtags": [tag] * many}))

    document = tweet_document(one, engagement(one), 0, is_retweet=False)

    assert len(document) < MAX_DOCUMENT_BYTES
