from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.client import Client, connect, lasting
from penstock.client.feed import Feed, FeedEvents
from penstock.client.outgoing import PART_BYTES, StagedEvents
from penstock.errors import ConnectionLost, FeedMoved, NotRunning, ServerRefused
from tests.local_server import LocalServer, local_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lasting, "PAUSE_S", 0.01)


def opened(server: LocalServer) -> Feed:
    return Feed(server.data, "cdc:shop", gateway="cdc", retry_s=30)


def stored(server: LocalServer, topic: str) -> list[bytes]:
    with connect(server.data) as client:
        batches = client.fetch(topic, 0, 1000).batches
        return [payload for batch in batches for payload in batch.payloads()]


def test_a_feed_goes_on_from_its_note(server: LocalServer) -> None:
    with opened(server) as feed:
        assert feed.note == ""
        feed.put(
            [FeedEvents("a", [b"1", b"2"]), FeedEvents("b", [b"3"])], note="place 3"
        )
        feed.put([], note="place 4")

    with opened(server) as feed:
        assert feed.note == "place 4"
        feed.put([FeedEvents("a", [b"5"], keys=[b"k"], ids=["x"])], note="place 5")

    assert stored(server, "a") == [b"1", b"2", b"5"]
    assert stored(server, "b") == [b"3"]


def test_a_broker_that_lost_what_was_staged_gets_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Client.store
    with local_server(tmp_path / "data") as server:
        feed = opened(server)

    def restarted(self: Client, stages: list[StagedEvents], commit: Any) -> object:
        monkeypatch.setattr(Client, "store", store)
        self.stage(*stages[0].place, "a", [b"1"])
        servers[0].stop()
        servers[0] = LocalServer(tmp_path / "data")
        return store(self, [], commit)

    monkeypatch.setattr(Client, "store", restarted)
    (tmp_path / "data" / "penstock.sock").unlink(missing_ok=True)
    servers = [LocalServer(tmp_path / "data")]
    try:
        with feed:
            feed.put([FeedEvents("a", [b"1"])], note="1")

        assert stored(servers[0], "a") == [b"1"]
    finally:
        servers[0].stop()


def test_an_answer_that_was_lost_is_asked_for_again(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Client.store

    def lost(self: Client, stages: list[StagedEvents], commit: Any) -> object:
        store(self, stages, commit)
        monkeypatch.setattr(Client, "store", store)
        raise ConnectionLost("here", "cut")

    with opened(server) as feed:
        monkeypatch.setattr(Client, "store", lost)
        feed.put([FeedEvents("a", [b"1"])], note="1")
        feed.put([FeedEvents("a", [b"2"])], note="2")

    assert stored(server, "a") == [b"1", b"2"]


def test_a_broker_that_loses_again_and_again_what_is_staged_is_an_error(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = []
    store = Client.store

    def lost(self: Client, stages: list[StagedEvents], commit: Any) -> object:
        tries.append(stages)
        return store(self, [], commit)

    monkeypatch.setattr(Client, "store", lost)
    with (
        Feed(server.data, "f", gateway="cdc", retry_s=0.05) as feed,
        pytest.raises(ServerRefused) as caught,
    ):
        feed.put([FeedEvents("a", [b"1"])], note="1")

    assert caught.value.error == "MissingStage"
    assert 2 <= len(tries) <= 6


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param([b"1"], id="one piece, sent with its commit"),
        pytest.param([bytes(PART_BYTES), b"1"], id="the second of two pieces"),
    ],
)
def test_what_the_broker_refuses_keeps_the_rest_from_being_stored(
    server: LocalServer, bad: list[bytes]
) -> None:
    ids = [*([None] * (len(bad) - 1)), "\x00"]
    with opened(server) as feed:
        with pytest.raises(ServerRefused) as caught:
            feed.put([FeedEvents("a", [b"0"]), FeedEvents("b", bad, ids=ids)], note="1")
        feed.put([FeedEvents("a", [b"2"])], note="2")

    assert caught.value.error != "MissingStage"
    assert stored(server, "a") == [b"2"]
    with connect(server.data) as client, pytest.raises(ServerRefused, match="b"):
        client.fetch("b", 0, 1)


def test_a_writer_is_told_of_another_one(server: LocalServer) -> None:
    with opened(server) as first, opened(server) as second:
        first.put([FeedEvents("a", [b"1"])], note="1")

        with pytest.raises(FeedMoved, match="'1'"):
            second.put([FeedEvents("a", [b"1", b"2"])], note="2")

    assert stored(server, "a") == [b"1"]


def test_what_makes_no_sense_is_a_dead_letter_once(server: LocalServer) -> None:
    with opened(server) as feed:
        feed.put([], note="1", letters=[("panic", b"\xff{"), ("no JSON", b"[")])

    with connect(server.data) as client:
        answer: Any = client.ask("dead-letters")
    assert [
        (one["gateway"], one["reason"], one["raw"]) for one in answer["letters"]
    ] == [("cdc", "panic", b"\xff{"), ("cdc", "no JSON", b"[")]


def test_events_that_are_refused_are_an_error(server: LocalServer) -> None:
    with opened(server) as feed:
        with pytest.raises(ServerRefused, match="reserved|begin"):
            feed.put([FeedEvents("$errors", [b"1"])], note="1")

        feed.put([FeedEvents("a", [b"1"])], note="1")

    assert stored(server, "a") == [b"1"]


def test_a_server_that_stays_away_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(NotRunning):
        Feed(tmp_path, "f", gateway="cdc", retry_s=0)
