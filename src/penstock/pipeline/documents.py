"""Documents of the store: a tweet with all of its scores, its user, a user's totals."""

from __future__ import annotations

import msgspec

from penstock.pipeline.tweet import Tweet, User
from penstock.pipeline.vader import compound
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


TWEETS = "tweets"
USERS = "users"
ENGAGEMENTS = "users_engagements"
COLLECTIONS = (TWEETS, USERS, ENGAGEMENTS)


class SentimentsData(msgspec.Struct, frozen=True, gc=False):
    tweet_text: str | None
    tweet_words: list[str]
    words_emotion_values: list[int]


class EngagementData(msgspec.Struct, frozen=True, gc=False):
    favorite_count: int | None
    retweet_count: int | None
    followers_count: int | None


class OriginalTweet(msgspec.Struct, frozen=True, gc=False):
    """What was read."""

    id_str: str | None
    text: str | None
    created_at: str | None
    lang: str | None
    favorite_count: int | None
    retweet_count: int | None
    hashtags: list[str | None] | None
    retweeted_id: str | None
    user: User


class TweetDocument(msgspec.Struct, frozen=True, gc=False):
    """A tweet and its scores. A score that is not there is None."""

    tw_id: str | None
    text: str | None
    is_retweet: bool
    user_id: str | None
    screen_name: str | None
    created_at: str | None
    sentiments_data: SentimentsData
    sentiments_score: float | None
    vader_score: float | None
    engagement_data: EngagementData
    engagement_score: float
    hashtags: list[str | None] | None
    at_ms: int | None
    original_tweet: OriginalTweet


_encode = msgspec.json.Encoder().encode


def tweet_document(
    tweet: Tweet, engagement: float, at_ms: int | None, *, is_retweet: bool
) -> bytes:
    """The document of a tweet, as JSON."""
    text, user, hashtags = tweet.text, tweet.author, tweet.hashtags
    words = words_of(text)
    values = values_of(words)
    retweeted = tweet.retweeted_status
    return _encode(
        TweetDocument(
            tw_id=tweet.id_str,
            text=text,
            is_retweet=is_retweet,
            user_id=user.id_str,
            screen_name=user.screen_name,
            created_at=tweet.created_at,
            sentiments_data=SentimentsData(text, words, values),
            sentiments_score=mean(values),
            vader_score=None if text is None else compound(text),
            engagement_data=EngagementData(
                tweet.favorite_count, tweet.retweet_count, user.followers_count
            ),
            engagement_score=engagement,
            hashtags=hashtags,
            at_ms=at_ms,
            original_tweet=OriginalTweet(
                id_str=tweet.id_str,
                text=text,
                created_at=tweet.created_at,
                lang=tweet.lang,
                favorite_count=tweet.favorite_count,
                retweet_count=tweet.retweet_count,
                hashtags=hashtags,
                retweeted_id=None if retweeted is None else retweeted.id_str,
                user=user,
            ),
        )
    )


def user_document(tweet: Tweet) -> bytes:
    """Who wrote a tweet, as he came with it."""
    return _encode(tweet.author)
