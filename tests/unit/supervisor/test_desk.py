from __future__ import annotations

import socket
from pathlib import Path

import pytest

from penstock.client import connect
from penstock.errors import ClientError
from penstock.supervisor.desk import BrokerDesk
from penstock.supervisor.sums import Sums
from tests.local_server import local_server


def test_what_it_said_last_counts_while_it_is_away(tmp_path: Path) -> None:
    sums = Sums()
    with local_server(tmp_path / "data") as server:
        desk = BrokerDesk(str(server.data), None)
        desk.make_topics(spark=True)
        with connect(server.data) as client:
            client.publish("firehose", [b"1", b"2"])
            client.publish("tweets_stats", [b'{"processed": 3}'])
        desk.ask()
        desk.look_at(sums)
        assert desk.letters("ingest sse") == 0

    desk.look_at(sums)
    desk.ask()

    assert desk.counted.topics["firehose"] == 2
    assert sums.reported == {"tweets_stats": 3}
    assert desk.letters("ingest sse") == -1


def test_a_stream_is_wanted_when_the_broker_says_so(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server:
        desk = BrokerDesk(str(server.data), None)
        assert not desk.wants_stream()
        desk.ask()
        assert not desk.wants_stream()

        server._desk.figures.ask_for_stream()
        assert desk.wants_stream()

    assert not desk.wants_stream()


def test_a_broker_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("penstock.supervisor.desk.ANSWER_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        desk = BrokerDesk(f"127.0.0.1:{deaf.getsockname()[1]}", None)

        with pytest.raises(ClientError, match=r"within 0\.1 s"):
            desk.make_topics(spark=False)
        desk.ask()

    assert desk.counted.topics == {}


def test_a_broker_with_users_is_logged_in_to(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret\n")
    with local_server(tmp_path / "data", {"up": "secret"}) as server:
        desk = BrokerDesk(str(server.data), ("up", str(file)))

        desk.make_topics(spark=False)
        desk.ask()

        assert "firehose" in desk.counted.topics
        with pytest.raises(ClientError, match="log"):
            BrokerDesk(str(server.data), None).make_topics(spark=False)
        desk.hang_up()
