from __future__ import annotations

import msgspec

from penstock.tweets.generator import Generator, MadeMessage, MadeTweet


def test_a_tweet_without_a_retweet_does_not_mention_one() -> None:
    tweet = Generator(1, 1).tweet(1)
    tweet.retweeted_status = None

    assert "retweeted_status" not in msgspec.to_builtins(tweet)


def test_a_message_can_be_read_back() -> None:
    data = Generator(1, 1).data(2)

    message = msgspec.json.decode(data, type=MadeMessage, strict=True)

    assert isinstance(message.message.tweet, MadeTweet)
    assert msgspec.json.encode(message) == data
