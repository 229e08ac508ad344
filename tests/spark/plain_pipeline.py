"""The pipeline in plain Python, tweet by tweet: what every run has to come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

Json = dict[str, Any]


class Expected:
    """What payloads of the firehose, given in order as JSON, come to."""

    def __init__(self, payloads: list[Json]) -> None:
        self.tweets: dict[str, tuple[int, Json]] = {}
        self.users: dict[str, tuple[int, Json]] = {}
        self.engagements: dict[str, Json] = {}
        self.tags: Counter[str] = Counter()
        self.strays: list[int] = []
        self.count = 0
        for offset, payload in enumerate(payloads):
            self._take(offset, payload)

    def _take(self, offset: int, payload: Json) -> None:
        outer = payload.get("message", {}).get("tweet")
        if outer is None:
            self.strays.append(offset)
            return
        self.tags.update(tag["text"] for tag in outer["entities"]["hashtags"])
        # The tweet that came is newer than what it holds.
        for depth, tweet in reversed(list(enumerate(levels(outer)))):
            user = tweet["user"]
            self.count += 1
            self.users[user["id_str"]] = offset, user
            self.tweets[tweet["id_str"]] = offset, scores(tweet, depth)
            self._engage(user, tweet)

    def _engage(self, user: Json, tweet: Json) -> None:
        now = self.engagements.setdefault(user["id_str"], {"count": 0, "sum": 0.0})
        score = engagement(tweet)
        now["count"] += 1
        now["sum"] += score
        now["last_score"] = score
        now["last_tweet_id"] = tweet["id_str"]
        now["screen_name"] = user["screen_name"]


def levels(tweet: Json | None) -> Iterator[Json]:
    while tweet is not None:
        yield tweet
        tweet = tweet.get("retweeted_status")


def scores(tweet: Json, depth: int) -> Json:
    """The parts of a tweet's document that are computed."""
    text = "".join(sign for sign in tweet["text"] if sign not in ".,?/:;!|")
    words = [word for word in text.split(" ") if word]
    values = [AFINN.get(word, 0) for word in words]
    return {
        "tw_id": tweet["id_str"],
        "text": tweet["text"],
        "is_retweet": depth > 0,
        "user_id": tweet["user"]["id_str"],
        "words": words,
        "values": values,
        "sentiment": sum(values) / len(values) if values else None,
        "engagement": engagement(tweet),
        "hashtags": [tag["text"] for tag in tweet["entities"]["hashtags"]],
    }


def engagement(tweet: Json) -> float:
    likes: int = tweet["favorite_count"] + tweet["retweet_count"]
    return likes / (tweet["user"]["followers_count"] or 1)


def _afinn() -> dict[str, int]:
    text = files("afinn").joinpath("data/AFINN-111.txt").read_text(encoding="utf-8")
    pairs = (line.split("\t") for line in text.splitlines())
    return {word: int(value) for word, value in pairs}


AFINN = _afinn()
