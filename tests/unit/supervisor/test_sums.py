from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path

from penstock.broker.broker import Broker
from penstock.client import Client, connect
from penstock.client.address import SOCKET_NAME
from penstock.log import Log
from penstock.supervisor.figures import counted
from penstock.supervisor.plan import SAMPLES
from penstock.supervisor.sums import Sums
from tests.local_server import local_server


def say(client: Client, topic: str, *events: dict[str, object]) -> None:
    client.publish(topic, [json.dumps(one).encode() for one in events])


def test_topics_are_summed_as_far_as_they_go(tmp_path: Path) -> None:
    sums = Sums()
    with local_server(tmp_path / "data") as server, connect(server.data) as client:
        sums.look(client, counted(client).topics)
        assert not sums.reported
        say(client, "tweets_stats", {"processed": 4})
        sums.look(client, counted(client).topics)
        say(client, "tweets_stats", {"processed": 5})
        say(client, "logger_stats", {"crashes": 2})
        sums.look(client, counted(client).topics)

    assert sums.is_whole
    assert sums.reported == {"tweets_stats": 9, "logger_stats": 2}


def test_panics_behind_the_last_window_wait(tmp_path: Path) -> None:
    kept = tmp_path / "sums.json"
    sums = Sums(kept)
    with local_server(tmp_path / "data") as server, connect(server.data) as client:
        say(client, SAMPLES, {"kind": "panics", "count": 3})
        client.publish(SAMPLES, [b"nonsense", b'{"kind": "panics", "count": "x"}'])
        sums.look(client, counted(client).topics)
        assert sums.waiting == 3
        (_, last) = next(iter(client.fetch(SAMPLES, 1, 3).batches)).events()
        say(
            client,
            "logger_stats",
            {"crashes": 3, "window_end_ms": last.timestamp_ms + 1},
        )
        sums.look(client, counted(client).topics)
        assert sums.waiting == 0
        time.sleep(0.002)  # the clock of the broker ticks in milliseconds
        say(client, SAMPLES, {"kind": "panics", "count": 4}, {"kind": "x", "count": 9})
        again = Sums(kept)
        again.look(client, counted(client).topics)

    assert again.waiting == 4


def test_another_run_goes_on_with_them(tmp_path: Path) -> None:
    kept = tmp_path / "sums.json"
    with local_server(tmp_path / "data") as server, connect(server.data) as client:
        say(client, "tweets_stats", {"processed": 4})
        Sums(kept).look(client, counted(client).topics)
        say(client, "tweets_stats", {"processed": 5})
        again = Sums(kept)
        again.look(client, {"tweets_stats": 2})
        again.look(client, counted(client).topics)

    assert again.reported == Sums(kept).reported == {"tweets_stats": 9}


def test_what_went_before_it_was_read_is_noticed(tmp_path: Path) -> None:
    kept = tmp_path / "sums.json"
    with local_server(tmp_path / "data") as server, connect(server.data) as client:
        for _ in range(5):
            say(client, "tweets_stats", {"processed": 1})
    with Broker(partial(Log.open, tmp_path / "data")) as broker:
        broker.log.trim("tweets_stats", 2)
    (tmp_path / "data" / SOCKET_NAME).unlink()
    with local_server(tmp_path / "data") as server, connect(server.data) as client:
        sums = Sums(kept)
        sums.look(client, counted(client).topics)

    assert not sums.is_whole
    assert not Sums(kept).is_whole
