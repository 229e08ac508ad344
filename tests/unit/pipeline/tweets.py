"""Tweets of Twitter's API, for tests of what is made of them."""

from __future__ import annotations

import json
from typing import Any

from penstock.pipeline.portion import TweetPortion, portion
from penstock.pipeline.tweet import Tweet, read

Json = dict[str, Any]


def tweet(id: str, *, user: str = "u", followers: int = 10, **more: Any) -> Json:
    """A tweet; what is given replaces what is usual."""
    return {
        "id_str": id,
        "text": f"text of {id}",
        "favorite_count": 2,
        "retweet_count": 1,
        "entities": {"hashtags": []},
        "user": {
            "id_str": user,
            "screen_name": f"name of {user}",
            "followers_count": followers,
        },
        **more,
    }


def tagged(id: str, *tags: str, **more: Any) -> Json:
    return tweet(id, entities={"hashtags": [{"text": tag} for tag in tags]}, **more)


def nested(levels: int) -> Json:
    """A tweet with so many below it; each has its depth as id."""
    found = tweet(str(levels), user=f"user of {levels}")
    for depth in reversed(range(levels)):
        user = f"user of {depth}"
        found = tweet(str(depth), user=user, retweeted_status=found)
    return found


def payload(one: object, at: int = 0) -> bytes:
    """The payload of a tweet that comes ``at`` milliseconds after the first second."""
    message = {"tweet": one, "unix_timestamp_100us": 10_000 + 10 * at}
    return json.dumps({"message": message}).encode()


def taken(one: Json) -> Tweet:
    """The tweet, as it is read."""
    return read(payload(one)).tweets[0]


def portion_of(*tweets: Json) -> TweetPortion:
    """Of tweets at offsets 0, 1 and so on, a millisecond apart."""
    return portion(
        (offset, 5_000 + offset, payload(one, offset))
        for offset, one in enumerate(tweets)
    )
