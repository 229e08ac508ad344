"""What tests of the pipeline share: tweets, and what has become of them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import pytest

from penstock.client import connect
from penstock.tweets.generator import Generator
from tests.serving import Serving
from tests.spark.plain_pipeline import Expected, raw

Json = dict[str, Any]
WINDOW_MS = 5_000


class Documents(Protocol):
    def read(self, collection: str) -> dict[str, tuple[int, Json]]:
        """Version and document, by key."""


class Counting(Protocol):
    def writes(self, collection: str) -> dict[str, int]:
        """How often each document was changed, by key."""


def check(broker: Serving, store: Documents, payloads: Sequence[Json | bytes]) -> None:
    """Everything is as plain Python has it, and nothing is there twice."""
    expected = Expected(payloads)
    assert differences(store.read("tweets"), expected.tweets) == {}
    assert differences(store.read("users"), expected.users) == {}
    for key, (_, totals) in store.read("users_engagements").items():
        wanted = expected.engagements.pop(key)
        assert totals["sum"] == pytest.approx(wanted.pop("sum"))
        assert totals["avg"] == pytest.approx(totals["sum"] / totals["count"])
        assert wanted == {name: totals[name] for name in wanted}
        assert totals.keys() == {*wanted, "sum", "avg"}
    assert expected.engagements == {}
    counts: dict[str, int] = {}
    for one in events(broker, "hashtag_stats"):
        assert one["count"] > counts.get(one["tag"], 0)
        counts[one["tag"]] = one["count"]
    assert counts == expected.tags
    assert processed(broker) == (expected.count, expected.count)
    assert sorted(letters(broker)) == sorted(expected.letters)


def check_windows(
    broker: Serving, expected: Expected, panics: int, began_ms: int
) -> None:
    """Windows are of the time at which the broker got tweets; none is empty."""
    wanted: Counter[int] = Counter()
    for at_ms, count in zip(times(broker, "firehose"), expected.counts, strict=True):
        wanted[at_ms - at_ms % WINDOW_MS] += count
    wanted = +wanted
    now_ms = time.time_ns() / 1_000_000
    for topic in ("logger_stats", "tweets_stats", "users_stats"):
        told = events(broker, topic)
        assert [one["window_start_ms"] for one in told] == sorted(wanted), topic
        for one in told:
            assert one["window_end_ms"] == one["window_start_ms"] + WINDOW_MS
            assert 0 < one["p75"] <= one["p85"] <= one["p95"]
            most_ms = now_ms - one["window_start_ms"]
            assert one["p95"] <= 1.05 * most_ms, "times are told in few digits"
            if topic == "logger_stats":
                assert one["p75"] >= began_ms - one["window_end_ms"]
            else:
                assert one["processed"] == wanted[one["window_start_ms"]]
    assert sum(one["crashes"] for one in events(broker, "logger_stats")) == panics


def differences(
    found: dict[str, tuple[int, Json]], wanted: dict[str, tuple[int, Json]]
) -> dict[str, object]:
    """Documents that are not as they should be, by key: few, where one has failed."""
    return {
        key: (found.get(key), wanted.get(key))
        for key in found.keys() | wanted.keys()
        if found.get(key) != wanted.get(key)
    }


def written_again(store: Counting, payloads: Sequence[Json | bytes]) -> dict[str, int]:
    """Tweets that came once, and were written more often."""
    writes, came = store.writes("tweets"), Expected(payloads).events
    return {key: writes[key] for key in came if came[key] == 1 and writes[key] != 1}


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


def publish(broker: Serving, payloads: Sequence[Json | bytes]) -> None:
    with connect(broker.data) as client:
        client.publish("firehose", [raw(one) for one in payloads])


def events(broker: Serving, topic: str) -> list[Json]:
    """All there are of a topic, which need not be there yet."""
    with connect(broker.data) as client:
        known: Any = client.ask("topics")
        if topic not in {one["name"] for one in known["topics"]}:
            return []
        parts = client.fetch_all(topic, 0, 1 << 40)
        batches = [batch for part in parts for batch in part.batches]
    return [json.loads(one.payload) for batch in batches for one in batch.events()]


def times(broker: Serving, topic: str) -> list[int]:
    """When the broker got its events."""
    with connect(broker.data) as client:
        parts = client.fetch_all(topic, 0, 1 << 40)
        batches = [batch for part in parts for batch in part.batches]
    return [one.timestamp_ms for batch in batches for one in batch.events()]


def letters(broker: Serving) -> list[tuple[bytes, str]]:
    """What was not taken, and why."""
    with connect(broker.data) as client:
        answer: Any = client.ask("dead-letters", filter={"gateway": "pipeline"})
        numbers = [one["number"] for one in answer["letters"]]
        whole: list[Any] = [client.ask("dead-letters.show", number=n) for n in numbers]
    return [(one["raw"], one["reason"]) for one in whole]
