"""A tweet in the shape of Twitter's API v1.1, in the fields people use."""

from __future__ import annotations

import msgspec


class User(msgspec.Struct, gc=False):
    id: int
    id_str: str
    name: str
    screen_name: str
    location: str | None
    verified: bool
    followers_count: int
    friends_count: int
    statuses_count: int
    created_at: str
    lang: str


class Hashtag(msgspec.Struct, gc=False):
    text: str
    indices: tuple[int, int]
    """In characters: from "#" to behind the last."""


class Mention(msgspec.Struct, gc=False):
    screen_name: str
    name: str
    id: int
    id_str: str
    indices: tuple[int, int]


class Entities(msgspec.Struct, gc=False):
    hashtags: list[Hashtag]
    user_mentions: list[Mention]
    urls: list[str] = []
    symbols: list[str] = []


class Tweet(msgspec.Struct, gc=False, omit_defaults=True, kw_only=True):
    created_at: str
    id: int
    id_str: str
    text: str
    source: str
    user: User
    entities: Entities
    favorite_count: int
    retweet_count: int
    lang: str
    retweeted_status: Tweet | None = None


class Inner(msgspec.Struct, gc=False):
    tweet: Tweet
    unix_timestamp_100us: int


class Message(msgspec.Struct, gc=False):
    """What the data of a server-sent event hold."""

    message: Inner
