"""A payload of the firehose as tweets: the one that came, and those inside of it.

A payload is ``{"message": {"tweet": {…}, "unix_timestamp_100us": 17}}``; a
``retweeted_status`` is a tweet of its own, and so is one inside of that.

An event is taken whole or not at all. What has no place in a store is ``Unfit``: every
document that is made of the rest is within the limits of stores, so none of them stops
the pipeline.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.store.documents import MAX_KEY_BYTES, REPLACEMENT

# Levels of retweets below a tweet: Twitter has one.
DEPTH = 2
# Text of one tweet and its user. A text is four times in its document, and a byte of it
# becomes six if it has to be escaped: 24 times this is within the limit of documents.
MAX_TEXT_BYTES = 256 << 10
UNFIT = "it does not fit the schema of tweets"
NO_TWEET = "it holds no tweet with an id and a user"
TOO_DEEP = f"it holds retweets deeper than {DEPTH} levels"
NO_RETWEET = "it holds a retweeted tweet without an id or a user"
LONG_ID = f"it holds an id of more than {MAX_KEY_BYTES} bytes"
TOO_LARGE = f"it holds a tweet with more than {MAX_TEXT_BYTES} bytes of text"

Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class User(msgspec.Struct, frozen=True, gc=False):
    """Who wrote a tweet, as he came with it."""

    id_str: str | None = None
    screen_name: str | None = None
    name: str | None = None
    lang: str | None = None
    location: str | None = None
    followers_count: Int64 | None = None
    friends_count: Int64 | None = None


class Hashtag(msgspec.Struct, frozen=True, gc=False):
    text: str | None = None


class Entities(msgspec.Struct, frozen=True, gc=False):
    hashtags: list[Hashtag | None] | None = None


class Tweet(msgspec.Struct, frozen=True, gc=False):
    id_str: str | None = None
    text: str | None = None
    created_at: str | None = None
    lang: str | None = None
    favorite_count: Int64 | None = None
    retweet_count: Int64 | None = None
    entities: Entities | None = None
    user: User | None = None
    retweeted_status: Tweet | None = None

    @property
    def key(self) -> str:
        """Its id; one that was taken has one."""
        return self.id_str or ""

    @property
    def author(self) -> User:
        return self.user or _UNKNOWN_USER

    @property
    def hashtags(self) -> list[str | None] | None:
        if self.entities is None or self.entities.hashtags is None:
            return None
        return [None if tag is None else tag.text for tag in self.entities.hashtags]


class Inner(msgspec.Struct, frozen=True, gc=False):
    tweet: Tweet | None = None
    unix_timestamp_100us: Int64 | None = None


class Message(msgspec.Struct, frozen=True, gc=False):
    message: Inner | None = None


class TakenEvent(msgspec.Struct, frozen=True, gc=False):
    """What an event holds."""

    tweets: list[Tweet]
    """The one that came, and those inside of it, from the outside in."""
    at_ms: int | None
    """When it was sent, as it says itself."""


class Unfit(Exception):
    """An event that is not taken; the text says why."""


_UNKNOWN_USER = User()
_decode = msgspec.json.Decoder(Message).decode


def read(payload: bytes) -> TakenEvent:
    """What a payload holds; raises Unfit."""
    try:
        inner = _decode(payload).message
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise Unfit(UNFIT) from None
    if inner is None or inner.tweet is None:
        raise Unfit(NO_TWEET)
    # What is decoded is never larger than what it is decoded from.
    long = len(payload) > MAX_TEXT_BYTES
    tweets: list[Tweet] = []
    tweet: Tweet | None = inner.tweet
    while tweet is not None:
        if len(tweets) > DEPTH:
            raise Unfit(TOO_DEEP)
        key, user = tweet.id_str, tweet.author.id_str
        if key is None or user is None:
            raise Unfit(NO_RETWEET if tweets else NO_TWEET)
        if _is_long(key) or _is_long(user):
            raise Unfit(LONG_ID)
        if long and text_bytes(tweet) > MAX_TEXT_BYTES:
            raise Unfit(TOO_LARGE)
        tweets.append(tweet)
        tweet = tweet.retweeted_status
    at = inner.unix_timestamp_100us
    return TakenEvent(tweets, None if at is None else int(at / 10))


def text_bytes(tweet: Tweet) -> int:
    """How much text of its author there is in a tweet."""
    user = tweet.author
    texts = (tweet.text, tweet.created_at, tweet.lang)
    own = (user.screen_name, user.name, user.lang, user.location)
    tags = ",".join("null" if tag is None else tag for tag in tweet.hashtags or ())
    return sum(len(text.encode()) for text in (*texts, *own, tags) if text is not None)


def _is_long(key: str) -> bool:
    """Whether it is too long as the store writes it."""
    if len(key) <= MAX_KEY_BYTES // 4:
        return False
    return len(key.replace("\0", REPLACEMENT).encode()) > MAX_KEY_BYTES
