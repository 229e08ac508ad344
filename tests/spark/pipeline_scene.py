"""What tests of the pipeline share: tweets, and what has become of them."""

from __future__ import annotations

import json
from typing import Any, Protocol

import pytest

from penstock.client import connect
from penstock.tweets.generator import Generator
from tests.serving import Serving
from tests.spark.plain_pipeline import Expected

Json = dict[str, Any]


class Documents(Protocol):
    def read(self, collection: str) -> dict[str, tuple[int, Json]]:
        """Version and document, by key."""


def check(broker: Serving, store: Documents, payloads: list[Json]) -> None:
    """Everything is as plain Python has it, and nothing is there twice."""
    expected = Expected(payloads)
    tweets = store.read("tweets")
    assert {key: (at, computed(doc)) for key, (at, doc) in tweets.items()} == (
        expected.tweets
    )
    users = store.read("users")
    assert users.keys() == expected.users.keys()
    for key, (version, user) in users.items():
        at, whole = expected.users[key]
        assert (version, user) == (at, {name: whole[name] for name in user})
    for key, (_, totals) in store.read("users_engagements").items():
        wanted = expected.engagements.pop(key)
        assert totals["sum"] == pytest.approx(wanted.pop("sum"))
        assert totals["avg"] == pytest.approx(totals["sum"] / totals["count"])
        assert wanted == {name: totals[name] for name in wanted}
    assert expected.engagements == {}
    counts: dict[str, int] = {}
    for one in events(broker, "hashtag_stats"):
        assert one["count"] > counts.get(one["tag"], 0)
        counts[one["tag"]] = one["count"]
    assert counts == expected.tags
    samples = events(broker, "pipeline_samples")
    for kind in ("processing", "tweets", "users"):
        found = [one for one in samples if one["kind"] == kind]
        assert sum(one["count"] for one in found) == expected.count, kind
        assert all(one["ms"] > 0 for one in found)
    buried = sorted(json.dumps(json.loads(one)) for one in letters(broker))
    assert buried == sorted(json.dumps(payloads[offset]) for offset in expected.strays)


def computed(document: Json) -> Json:
    """What ``plain_pipeline`` computes, of a document of the store."""
    data = document["sentiments_data"]
    assert data["tweet_text"] == document["text"]
    assert document["original_tweet"]["text"] == document["text"]
    assert -1 <= document["vader_score"] <= 1
    return {
        "tw_id": document["tw_id"],
        "text": document["text"],
        "is_retweet": document["is_retweet"],
        "user_id": document["user_id"],
        "words": data["tweet_words"],
        "values": data["words_emotion_values"],
        "sentiment": document["sentiments_score"],
        "engagement": document["engagement_score"],
        "hashtags": document["hashtags"],
    }


def processed(broker: Serving) -> tuple[int, int]:
    """How many tweets, and users, the statistics know of."""
    both = (events(broker, topic) for topic in ("tweets_stats", "users_stats"))
    return tuple(sum(one["processed"] for one in found) for found in both)


def generated(seed: int, count: int) -> list[Json]:
    """What the ingest would let through of so many messages."""
    generator = Generator(seed, 1, malformed_rate=0.05)
    found = []
    for data in generator.batch(1, count):
        try:
            payload = json.loads(data)
        except ValueError:
            continue
        if isinstance(payload, dict):
            found.append(payload)
    return found


def publish(broker: Serving, payloads: list[Json]) -> None:
    with connect(broker.data) as client:
        client.publish("firehose", [json.dumps(one).encode() for one in payloads])


def events(broker: Serving, topic: str) -> list[Json]:
    """All there are of a topic, which need not be there yet."""
    with connect(broker.data) as client:
        known: Any = client.ask("topics")
        if topic not in {one["name"] for one in known["topics"]}:
            return []
        parts = client.fetch_all(topic, 0, 1 << 40)
        batches = [batch for part in parts for batch in part.batches]
    return [json.loads(one.payload) for batch in batches for one in batch.events()]


def letters(broker: Serving) -> list[str]:
    with connect(broker.data) as client:
        answer: Any = client.ask("dead-letters", filter={"gateway": "pipeline"})
        numbers = [one["number"] for one in answer["letters"]]
        whole: list[Any] = [client.ask("dead-letters.show", number=n) for n in numbers]
    return sorted(one["raw"].decode() for one in whole)
