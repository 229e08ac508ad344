from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.client import Client, connect
from penstock.supervisor import topics
from tests.local_server import local_server


def kept(client: Client, name: str) -> int | None:
    found: Any = client.ask("topics.show", name=name)
    size: int | None = found["retention_bytes"]
    return size


def test_what_only_tells_how_it_goes_is_kept_up_to_a_size(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server, connect(server.data) as client:
        topics.make(client, topics.wanted(spark=True))
        topics.make(client, topics.wanted(spark=True))

        found = {name: kept(client, name) for name in topics.wanted(spark=True)}

    assert found == {
        "firehose": None,
        "tweets": None,
        "users": None,
        "users_engagements": None,
        "pipeline_samples": 64 << 20,
        "logger_stats": 64 << 20,
        "tweets_stats": 64 << 20,
        "users_stats": 64 << 20,
        "hashtag_stats": 256 << 20,
    }


def test_a_topic_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server, connect(server.data) as client:
        client.ask("topics.create", name="firehose", retention_bytes=1 << 30)

        topics.make(client, topics.wanted(spark=False))

        assert kept(client, "firehose") == 1 << 30


def test_without_spark_there_is_less_to_tell() -> None:
    assert set(topics.wanted(spark=False)) == {"firehose", "pipeline_samples"}
