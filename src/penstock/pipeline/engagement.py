"""Engagement: likes and retweets of a tweet, for each follower of its user."""

from __future__ import annotations

from penstock.pipeline.tweet import Tweet


def engagement(tweet: Tweet) -> float:
    """(favorite_count + retweet_count) / followers_count, by 1 for who has none.

    Counts that are missing are 0.
    """
    likes = float(tweet.favorite_count or 0) + float(tweet.retweet_count or 0)
    return likes / (tweet.author.followers_count or 1)
