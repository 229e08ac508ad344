"""What both clients do is in tests/contract; here is what only this one does."""

from __future__ import annotations

import pytest

from penstock.client import Client, blocking, connect
from penstock.errors import RemoteProtocolError, ServerRefused
from penstock.model.remote_errors import remote_error
from penstock.wire.native import Fetched, Published
from tests.local_server import LocalServer


def test_a_server_that_is_busy_is_asked_again(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(server.data) as client:
        answers: list[ServerRefused | Published] = [
            remote_error("Backlogged", "too much"),
            remote_error("Backlogged", "too much"),
            Published(1, 5),
        ]

        def answer(seq: int) -> Published:
            found = answers.pop(0)
            if isinstance(found, ServerRefused):
                raise found
            return found

        monkeypatch.setattr(client, "_wait", answer)
        monkeypatch.setattr(blocking, "RETRY_S", 0.0)

        assert list(client.publish("t", b"x")) == [5]


def test_patience_with_a_busy_server_ends(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(server.data, timeout_s=5.0) as client:
        client._timeout_s = -1.0

        def refuse(seq: int) -> Published:
            raise remote_error("Backlogged", "too much")

        monkeypatch.setattr(client, "_wait", refuse)

        with pytest.raises(ServerRefused, match="^too much$"):
            client.publish("t", b"x")
        client._timeout_s = 5.0


def fill(client: Client, count: int) -> None:
    for number in range(count):
        client.publish("t", b"%d" % number)


def test_all_of_a_range_is_fetched_with_the_next_part_on_its_way(
    server: LocalServer,
) -> None:
    with connect(server.data) as client:
        fill(client, 10)

        parts = []
        for part in client.fetch_all("t", 1, 8, max_bytes=300):
            parts.append(part)
            client.ask("topics")  # others may use the client in between

        found = [
            p for part in parts for batch in part.batches for p in batch.payloads()
        ]
        assert found == [b"%d" % number for number in range(1, 8)]
        assert len(parts) > 2


@pytest.mark.parametrize("end", [3, 100])
def test_a_range_ends_with_the_topic(server: LocalServer, end: int) -> None:
    with connect(server.data) as client:
        fill(client, 3)

        (part,) = client.fetch_all("t", 0, end)

        assert part.next_offset == 3


def test_a_range_may_be_left_in_the_middle(server: LocalServer) -> None:
    with connect(server.data) as client:
        fill(client, 10)

        parts = client.fetch_all("t", 0, 10, max_bytes=1)
        next(parts)
        parts.close()  # type: ignore[attr-defined]
        client.ask("topics")

        assert client._session._answers == {}


def test_junk_in_an_answer_is_the_fault_of_the_server(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(server.data) as client:
        fill(client, 1)
        junk, wait = Fetched(1, [b"junk"], 1, 0, 1), client._wait
        monkeypatch.setattr(client, "_wait", lambda seq: (wait(seq), junk)[1])

        with pytest.raises(RemoteProtocolError, match="4 bytes that are no frame"):
            client.fetch("t", 0, 1)
