"""What a run of ``penstock up`` has to come to, looked up in its broker and its store.

Tweets are made a second time, and everything that follows from them is computed in
plain Python (``plain_pipeline``).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from penstock.client import connect
from penstock.client.blocking import Client
from penstock.tweets.generator import PANIC, Generator, MessageKind
from tests.serving import Serving
from tests.spark.pipeline_scene import Documents, check, events
from tests.spark.plain_pipeline import Expected

Json = dict[str, Any]
COLLECTIONS = ("tweets", "users", "users_engagements")
# What the source is run with.
RATES = {"panic_rate": 0.01, "malformed_rate": 0.001}
STREAMS = (1, 2)


def check_everything(
    broker: Serving, store: Documents, *, seed: int, count: int
) -> None:
    """Nothing is lost, nothing is there twice, and all of it is right."""
    sent = {stream: Generator(seed, stream, **RATES) for stream in STREAMS}
    with connect(broker.data) as client:
        payloads = check_firehose(client, sent, count)
        check_letters(client, sent, count)
        for collection in COLLECTIONS:
            check_changes(client, collection, store.read(collection))
        check_subscribers(client)
    check(broker, store, payloads)
    check_statistics(broker, Expected(payloads).count, sent, count)


def check_firehose(
    client: Client, sent: dict[int, Generator], count: int
) -> list[bytes]:
    """Each message once, those of a stream in their order; what they hold."""
    found: dict[int, list[tuple[int, bytes]]] = {stream: [] for stream in sent}
    whole = stored(client, "firehose")
    for one in whole:
        stream = int(one.headers["source"].rpartition("/")[2])
        found[stream].append((int(one.headers["sse-id"]), one.payload))
    for stream, generator in sent.items():
        assert found[stream] == [
            (n, generator.data(n))
            for n in range(1, count + 1)
            if generator.kind(n) in (MessageKind.TWEET, MessageKind.OTHER_OBJECT)
        ]
    return [one.payload for one in whole]


def check_letters(client: Client, sent: dict[int, Generator], count: int) -> None:
    """Panics and what is no JSON object are dead letters, each once."""
    wanted = Counter(
        generator.data(n)
        for generator in sent.values()
        for n in range(1, count + 1)
        if generator.kind(n) not in (MessageKind.TWEET, MessageKind.OTHER_OBJECT)
    )
    answer: Any = client.ask("dead-letters", filter={"gateway": "ingest sse"})
    letters: list[Any] = [
        client.ask("dead-letters.show", number=one["number"])
        for one in answer["letters"]
    ]
    assert Counter(one["raw"] for one in letters) == wanted
    assert wanted[PANIC] > 0


def check_changes(
    client: Client, collection: str, documents: dict[str, tuple[int, Json]]
) -> None:
    """Changes lead from nothing to the documents as they are, step by step."""
    now: dict[str, Json] = {}
    ids = set()
    for one in stored(client, collection):
        change = json.loads(one.payload)
        key = change["key"]
        assert change["op"] == ("update" if key in now else "insert")
        assert change["before"] == now.get(key)
        assert one.key == key.encode()
        now[key] = change["after"]
        ids.add(one.id)
    assert now == {key: document for key, (_, document) in documents.items()}
    assert len(ids) == len(stored(client, collection))


def check_subscribers(client: Client) -> None:
    answer: Any = client.ask("subscriptions")
    found = {one["topic"]: one for one in answer["subscriptions"]}
    for topic in COLLECTIONS:
        assert found[topic]["subscriber"] == f"up-{topic}"
        assert found[topic]["position"] == len(stored(client, topic))
        assert found[topic]["lag"] == 0


def check_statistics(
    broker: Serving, tweets: int, sent: dict[int, Generator], count: int
) -> None:
    """All windows are told, each once."""
    panics = sum(
        generator.kind(n) is MessageKind.PANIC
        for generator in sent.values()
        for n in range(1, count + 1)
    )
    wanted = {"logger_stats": panics, "tweets_stats": tweets, "users_stats": tweets}
    for topic, total in wanted.items():
        found = events(broker, topic)
        field = "crashes" if topic == "logger_stats" else "processed"
        assert sum(one[field] for one in found) == total, topic
        starts = [one["window_start_ms"] for one in found]
        assert len(set(starts)) == len(starts), topic


def stored(client: Client, topic: str) -> list[Any]:
    """All events of a topic."""
    parts = client.fetch_all(topic, 0, 1 << 40)
    return [
        event for part in parts for batch in part.batches for event in batch.events()
    ]
