"""What a part of the firehose comes to: the newest of each, and sums."""

from __future__ import annotations

import json

import pytest

from penstock.pipeline.portion import portion
from penstock.pipeline.tweet import NO_TWEET, UNFIT
from tests.unit.pipeline.tweets import payload, portion_of, tagged, tweet


def test_of_each_document_the_newest_counts() -> None:
    old = tweet("1", user="a", favorite_count=1)

    found = portion_of(
        old,
        tweet("2", user="b", retweeted_status={**old, "favorite_count": 5}),
        # He repeats himself: what came is newer than what it holds.
        tweet("3", user="a", retweeted_status=tweet("4", user="a", followers=99)),
    )

    versions = {key: version for key, version, _ in found.documents()}
    assert versions == {"1": 1, "2": 1, "3": 2, "4": 2}
    documents = {key: json.loads(doc) for key, _, doc in found.documents()}
    assert documents["1"]["engagement_data"]["favorite_count"] == 5
    assert documents["1"]["is_retweet"] is True
    assert documents["1"]["at_ms"] == 1001
    users = {key: (version, json.loads(doc)) for key, version, doc in found.authors()}
    assert {key: version for key, (version, _) in users.items()} == {"a": 2, "b": 1}
    assert users["a"][1]["followers_count"] == 10


def test_engagement_is_summed_over_every_tweet_of_a_user() -> None:
    own = tweet("1", user="a", favorite_count=4, retweet_count=0)

    found = portion_of(
        own,
        tweet("2", user="b", retweeted_status={**own, "favorite_count": 9}),
        tweet("3", user="a", favorite_count=1, retweet_count=0, followers=0),
    )

    first, second = found.users["a"], found.users["b"]
    assert first.sum == pytest.approx(0.4 + 0.9 + 1.0)
    assert (first.count, first.last.tweet.id_str, first.last.engagement) == (3, "3", 1)
    assert (second.count, second.last.tweet.id_str) == (1, "2")


def test_a_tag_counts_each_time_in_a_tweet_but_not_again_in_retweets() -> None:
    found = portion_of(
        tagged("1", "sun", "sea", "sun"),
        tagged("2", "sun", retweeted_status=tagged("9", "sea", "Sun")),
        tagged("3"),
        tweet("4", entities=None),
        tweet("5", entities={"hashtags": [{}, None]}),
    )

    assert found.tags == {"sun": 3, "sea": 1}


def test_tweets_are_counted_by_the_time_at_which_they_were_stored() -> None:
    inside = tweet("2", retweeted_status=tweet("3"))

    found = portion_of(tweet("1"), inside)

    assert found.times == {5_000: 1, 5_001: 2}


def test_what_is_not_taken_is_handed_out_beside_what_is() -> None:
    events = [payload(tweet("1")), b"{}", b'{"message": panic}', payload(tweet("2"))]

    found = portion((40 + at, 5_000, data) for at, data in enumerate(events))

    assert [(one.offset, one.reason, one.raw) for one in found.strays] == [
        (41, NO_TWEET, b"{}"),
        (42, UNFIT, b'{"message": panic}'),
    ]
    assert {key: one.version for key, one in found.tweets.items()} == {"1": 40, "2": 43}
