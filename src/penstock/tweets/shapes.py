"""A tweet in the shape of Twitter's API v1.1, in the fields people use."""

from __future__ import annotations

import msgspec


class MadeUser(msgspec.Struct, gc=False):
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


class MadeHashtag(msgspec.Struct, gc=False):
    text: str
    indices: tuple[int, int]
    """In characters: from "#" to behind the last."""


class Mention(msgspec.Struct, gc=False):
    screen_name: str
    name: str
    id: int
    id_str: str
    indices: tuple[int, int]


class MadeEntities(msgspec.Struct, gc=False):
    hashtags: list[MadeHashtag]
    user_mentions: list[Mention]
    urls: list[str] = []
    symbols: list[str] = []


class MadeTweet(msgspec.Struct, gc=False, omit_defaults=True, kw_only=True):
    created_at: str
    id: int
    id_str: str
    text: str
    source: str
    user: MadeUser
    entities: MadeEntities
    favorite_count: int
    retweet_count: int
    lang: str
    retweeted_status: MadeTweet | None = None


class MadeInner(msgspec.Struct, gc=False):
    tweet: MadeTweet
    unix_timestamp_100us: int


class MadeMessage(msgspec.Struct, gc=False):
    """What the data of a server-sent event hold."""

    message: MadeInner
