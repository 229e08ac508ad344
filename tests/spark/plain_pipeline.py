"""The pipeline in plain Python, tweet by tweet: what every run has to come to.

Nothing is shared with the pipeline but the words in which it says why it takes an event
not. It is slow, and has no batches: of everything it keeps the last.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any

from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from penstock.pipeline import tweet as said

Json = dict[str, Any]

TEXTS = ("id_str", "text", "created_at", "lang")
COUNTS = ("favorite_count", "retweet_count")
USER_TEXTS = ("id_str", "screen_name", "name", "lang", "location")
USER_COUNTS = ("followers_count", "friends_count")
# What of a text is in its document, and in the letter of an event that is not taken.
MAX_TEXT, MAX_ID, MAX_LETTER = 256 * 1024, 1024, 1024 * 1024


class Expected:
    """What payloads of the firehose, given in order, come to."""

    def __init__(self, payloads: Iterable[Json | bytes]) -> None:
        self.tweets: dict[str, tuple[int, Json]] = {}
        self.users: dict[str, tuple[int, Json]] = {}
        self.engagements: dict[str, Json] = {}
        self.tags: Counter[str] = Counter()
        self.letters: list[tuple[bytes, str]] = []
        self.counts: list[int] = []
        """Tweets of every event."""
        self.events: Counter[str] = Counter()
        """In how many events a tweet is."""
        for offset, payload in enumerate(payloads):
            self._take(offset, raw(payload))

    @property
    def count(self) -> int:
        return sum(self.counts)

    def _take(self, offset: int, payload: bytes) -> None:
        message = decoded(payload)
        why = said.UNFIT if message is None else reason(message)
        found = [] if message is None or why else list(levels(message["tweet"]))
        self.counts.append(len(found))
        self.events.update({tweet["id_str"] for tweet in found})
        if message is None or why:
            self.letters.append(letter(offset, payload, why))
            return
        self.tags.update(tag for tag in hashtags(found[0]) or [] if tag is not None)
        # The tweet that came is newer than what it holds.
        for depth, tweet in reversed(list(enumerate(found))):
            user = whole_user(tweet["user"])
            self.users[user["id_str"]] = offset, user
            self.tweets[tweet["id_str"]] = offset, document(tweet, depth, message)
            self._engage(user, tweet)

    def _engage(self, user: Json, tweet: Json) -> None:
        now = self.engagements.setdefault(user["id_str"], {"count": 0, "sum": 0.0})
        score = engagement(tweet)
        now["id_str"] = user["id_str"]
        now["count"] += 1
        now["sum"] += score
        now["last_score"] = score
        now["last_tweet_id"] = tweet["id_str"]
        now["screen_name"] = user["screen_name"]


def raw(payload: Json | bytes) -> bytes:
    return payload if isinstance(payload, bytes) else json.dumps(payload).encode()


# What is taken


def decoded(payload: bytes) -> Json | None:
    """The message; None for what is no JSON, or has other types."""
    try:
        found = json.loads(payload.decode(), parse_constant=no_json)
        json.dumps(found, ensure_ascii=False).encode()  # halves of characters
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    message = found.get("message")
    if message is None:
        return {}
    if not isinstance(message, dict) or not is_tweet(message.get("tweet")):
        return None
    return message if is_number(message.get("unix_timestamp_100us")) else None


def no_json(text: str) -> None:
    raise ValueError(f"{text} is no JSON")


def is_tweet(found: object) -> bool:
    """Whether what is there has the types of a tweet; anything may be missing."""
    if found is None:
        return True
    if not isinstance(found, dict):
        return False
    user, entities = found.get("user") or {}, found.get("entities") or {}
    return (
        isinstance(user, dict)
        and isinstance(entities, dict)
        and all(is_text(found.get(name)) for name in TEXTS)
        and all(is_number(found.get(name)) for name in COUNTS)
        and all(is_text(user.get(name)) for name in USER_TEXTS)
        and all(is_number(user.get(name)) for name in USER_COUNTS)
        and is_tweet(found.get("retweeted_status"))
    )


def is_text(found: object) -> bool:
    return found is None or isinstance(found, str)


def is_number(found: object) -> bool:
    return found is None or (type(found) is int and -(2**63) <= found < 2**63)


def reason(message: Json) -> str:
    """Why it is not taken; nothing if it is."""
    found = list(levels(message.get("tweet")))
    if not found or is_nameless(found[0]):
        return said.NO_TWEET
    for depth, tweet in enumerate(found):
        if depth > 2:
            return said.TOO_DEEP
        if is_nameless(tweet):
            return said.NO_RETWEET
        if any(len(key.encode()) > MAX_ID for key in keys(tweet)):
            return said.LONG_ID
        if len("".join(texts(tweet)).encode()) > MAX_TEXT:
            return said.TOO_LARGE
    return ""


def is_nameless(tweet: Json) -> bool:
    return None in keys(tweet)


def keys(tweet: Json) -> list[Any]:
    return [tweet.get("id_str"), (tweet.get("user") or {}).get("id_str")]


def texts(tweet: Json) -> Iterator[str]:
    """What people have written in it."""
    user = tweet["user"]
    for found in (
        *(tweet.get(name) for name in TEXTS[1:]),
        *(user.get(name) for name in USER_TEXTS[1:]),
        *(hashtags(tweet) or []),
    ):
        yield found or ""


def letter(offset: int, payload: bytes, why: str) -> tuple[bytes, str]:
    if len(payload) > MAX_LETTER:
        why += f"; this is the beginning of event {offset} of firehose"
    return payload[:MAX_LETTER], why


# What it comes to


def levels(tweet: Json | None) -> Iterator[Json]:
    while tweet is not None:
        yield tweet
        tweet = tweet.get("retweeted_status")


def document(tweet: Json, depth: int, message: Json) -> Json:
    text, user = tweet.get("text"), whole_user(tweet["user"])
    kept = "".join(sign for sign in text or "" if sign not in ".,?/:;!|")
    words = [word for word in kept.split(" ") if word]
    values = [afinn().get(word, 0) for word in words]
    sent = message.get("unix_timestamp_100us")
    retweeted = tweet.get("retweeted_status")
    return {
        "tw_id": tweet["id_str"],
        "text": text,
        "is_retweet": depth > 0,
        "user_id": user["id_str"],
        "screen_name": user["screen_name"],
        "created_at": tweet.get("created_at"),
        "sentiments_data": {
            "tweet_text": text,
            "tweet_words": words,
            "words_emotion_values": values,
        },
        "sentiments_score": sum(values) / len(values) if values else None,
        "vader_score": None if text is None else vader(text),
        "engagement_data": {
            **{name: tweet.get(name) for name in COUNTS},
            "followers_count": user["followers_count"],
        },
        "engagement_score": engagement(tweet),
        "hashtags": hashtags(tweet),
        "at_ms": None if sent is None else sent // 10,
        "original_tweet": {
            **{name: tweet.get(name) for name in (*TEXTS, *COUNTS)},
            "hashtags": hashtags(tweet),
            "retweeted_id": None if retweeted is None else retweeted["id_str"],
            "user": user,
        },
    }


def whole_user(user: Json) -> Json:
    return {name: user.get(name) for name in (*USER_TEXTS, *USER_COUNTS)}


def hashtags(tweet: Json) -> list[str | None] | None:
    found = (tweet.get("entities") or {}).get("hashtags")
    return None if found is None else [(tag or {}).get("text") for tag in found]


def engagement(tweet: Json) -> float:
    likes = (tweet.get("favorite_count") or 0) + (tweet.get("retweet_count") or 0)
    return float(likes / (tweet["user"].get("followers_count") or 1))


@cache
def vader(text: str) -> float:
    found: float = analyzer().polarity_scores(text)["compound"]
    return found


@cache
def analyzer() -> Any:
    return SentimentIntensityAnalyzer()


@cache
def afinn() -> dict[str, int]:
    text = files("afinn").joinpath("data/AFINN-111.txt").read_text(encoding="utf-8")
    pairs = (line.split("\t") for line in text.splitlines())
    return {word: int(value) for word, value in pairs}
