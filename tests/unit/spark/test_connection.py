from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.client import Client, connect, lasting
from penstock.client.address import Remote
from penstock.errors import ConnectionLost, NotRunning, ServerRefused
from penstock.model.remote_errors import remote_error
from penstock.spark import sink as spark_line
from penstock.spark.sink import SparkConnection
from penstock.table.connection import BrokerAccess
from tests.local_server import LocalServer, local_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting, "PAUSE_S", 0.01)


def where(path: Path | None, *servers: str, retry_s: float = 0.0) -> BrokerAccess:
    return BrokerAccess(
        servers=servers, path=None if path is None else str(path), retry_s=retry_s
    )


def topics(client: Client) -> object:
    return client.ask("topics")


def test_a_connection_is_made_when_it_is_needed(server: LocalServer) -> None:
    with SparkConnection(where(server.data)) as found:
        assert found.say(topics) == found.say(topics)
        found.close()
        assert found.say(topics)


def test_a_broker_that_is_away_is_waited_for(server: LocalServer) -> None:
    tries: list[Client] = []

    def once_lost(client: Client) -> str:
        tries.append(client)
        if len(tries) == 1:
            raise ConnectionLost("here", "it was cut")
        return "done"

    with SparkConnection(where(server.data, retry_s=60)) as found:
        assert found.say(once_lost) == "done"

    assert tries[0] is not tries[1]


def test_one_that_stays_away_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()

    with SparkConnection(where(tmp_path / "data")) as found, pytest.raises(NotRunning):
        found.say(topics)


def test_a_busy_broker_is_asked_again(server: LocalServer) -> None:
    answers = iter([remote_error("Backlogged", "later"), "done"])

    def busy(client: Client) -> object:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with SparkConnection(where(server.data, retry_s=60)) as found:
        assert found.say(busy) == "done"


def test_what_is_refused_is_not_asked_again(server: LocalServer) -> None:
    refused = pytest.raises(ServerRefused, match="nothing")

    with SparkConnection(where(server.data, retry_s=60)) as found, refused:
        found.say(lambda client: client.ask("nothing"))


def test_who_has_to_log_in_does(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("open sesame\n")
    with local_server(tmp_path / "data", {"ann": "open sesame"}) as server:
        path = str(server.data)
        known = BrokerAccess(
            servers=(), path=path, user="ann", password_file=str(tmp_path / "secret")
        )
        unknown = BrokerAccess(servers=(), path=path, user="ann", password="no")

        with SparkConnection(known) as found:
            assert found.say(topics)
        with SparkConnection(unknown) as found, pytest.raises(ServerRefused) as caught:
            found.say(topics)

    assert caught.value.error == "LoginRefused"


def test_of_several_servers_one_that_runs_is_taken(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def connected(address: Remote, **options: str | None) -> Client:
        asked.append(str(address))
        if address.host == "a":
            raise NotRunning(str(address), "nothing listens there")
        return connect(server.data, name=options["name"] or "")

    monkeypatch.setattr(spark_line, "connect", connected)

    with SparkConnection(where(None, "a:1", "b:1")) as found:
        assert found.say(topics)

    assert asked == ["a:1", "b:1"]
