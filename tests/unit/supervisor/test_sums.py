from __future__ import annotations

import json
from pathlib import Path

from penstock.client import Client, connect
from penstock.supervisor.figures import counted
from penstock.supervisor.sums import Sums
from tests.local_server import local_server


def say(client: Client, topic: str, *events: dict[str, object]) -> None:
    client.publish(topic, [json.dumps(one).encode() for one in events])


def test_topics_are_summed_as_far_as_they_go(tmp_path: Path) -> None:
    sums = Sums()
    with local_server(tmp_path / "data") as server, connect(server.data) as client:
        sums.look(client, counted(client).topics)
        assert not sums.samples and not sums.told
        tweets, panics = {"kind": "tweets", "count": 4}, {"kind": "panics", "count": 2}
        say(client, "pipeline_samples", tweets, panics, tweets)
        say(client, "tweets_stats", {"processed": 4})
        sums.look(client, counted(client).topics)
        say(client, "tweets_stats", {"processed": 5})
        say(client, "logger_stats", {"crashes": 2})
        sums.look(client, counted(client).topics)

    assert sums.samples == {"tweets": 8, "panics": 2}
    assert sums.told == {"tweets_stats": 9, "logger_stats": 2}
