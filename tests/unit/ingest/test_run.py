from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.client import connect
from penstock.errors import PenstockError, ServerRefused, UnfitSource
from penstock.ingest import source as source_module
from penstock.ingest.options import SseOptions, addresses
from penstock.ingest.run import TargetServer, run
from tests.local_server import LocalServer, local_server
from tests.sse_server import NO_CONTENT, Hanging, answer, sse_server

PATIENCE_S = 30.0


class Watch:
    """Who watches an ingest."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.told: dict[str, Any] = {}
        self.status: dict[str, Any] = {}

    def ready(self, **told: object) -> None:
        self.told = told

    def tell(self, *, events: int, **told: object) -> None:
        self.status = {"events": events, **told}

    def wait_for(self, **wanted: object) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while any(self.status.get(name) != value for name, value in wanted.items()):
            assert time.monotonic() < deadline_s, self.status
            time.sleep(0.005)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "BASE_S", 0.001)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


def ingest(
    server: LocalServer, watch: Watch, *urls: str, until_end: bool = True
) -> None:
    options = SseOptions(topic="t", until_end=until_end)
    run(addresses(urls, [], "t"), options, TargetServer(address=server.data), watch)


@contextmanager
def running(server: LocalServer, watch: Watch, *urls: str) -> Iterator[None]:
    """An ingest that goes on until it is told to end."""
    failed: list[PenstockError] = []

    def target() -> None:
        try:
            ingest(server, watch, *urls, until_end=False)
        except PenstockError as error:
            failed.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    try:
        yield
    finally:
        watch.stopping.set()
        thread.join(PATIENCE_S)
        assert not thread.is_alive(), "it does not end"
    assert failed == []


def payloads(server: LocalServer) -> list[bytes]:
    with connect(server.data) as client:
        batches = client.fetch("t", 0, 1 << 20).batches
        return [payload for batch in batches for payload in batch.payloads()]


def test_it_ends_at_once_when_told_to_while_it_waits_for_a_broker(
    tmp_path: Path,
) -> None:
    watch = Watch()
    told = threading.Timer(0.2, watch.stopping.set)
    began_s = time.monotonic()

    told.start()
    run(
        addresses(["http://127.0.0.1:1/"], [], "t"),
        SseOptions(topic="t"),
        TargetServer(address=tmp_path),
        watch,
    )

    assert time.monotonic() - began_s < 20
    assert watch.told == {}, "it was never ready"


def test_it_waits_for_a_broker(tmp_path: Path) -> None:
    watch = Watch()
    with sse_server(answer(b"data: {}\n\n"), NO_CONTENT) as source:
        target = SseOptions(topic="t", until_end=True)
        at = TargetServer(address=tmp_path / "data")
        streams = addresses([source.url], [], "t")
        thread = threading.Thread(target=run, args=(streams, target, at, watch))
        thread.start()
        with local_server(tmp_path / "data") as server:
            thread.join(PATIENCE_S)
            assert payloads(server) == [b"{}"]


def test_two_streams_are_stored_until_both_are_over(server: LocalServer) -> None:
    watch = Watch()
    first = answer(b'id: 7\ndata: {"a": 1}\n\nid: 8\ndata: {"message": panic}\n\n')
    second = answer(b'id: x\ndata: {"b": 1}\n\ndata: []\n\n')

    with sse_server(first, NO_CONTENT) as one, sse_server(second, NO_CONTENT) as two:
        ingest(server, watch, one.url, two.url)

    assert sorted(payloads(server)) == [b'{"a": 1}', b'{"b": 1}']
    assert watch.told["feeds"] == [f"ingest:t:{url[7:]}" for url in (one.url, two.url)]
    assert watch.status == {
        "events": 4,
        "lag": 0,
        "errors": 0,
        "panics": 1,
        "malformed": 1,
        "letters": 2,
        "connected": 0,
        "over": 2,
        "sources": {one.url: "8", two.url: "x"},
    }


def test_the_next_one_goes_on_where_it_was(server: LocalServer) -> None:
    watch = Watch()
    answers = answer(b"id: 7\ndata: {}\n\n"), NO_CONTENT
    with sse_server(*answers, *answers) as source:
        ingest(server, watch, source.url)
        ingest(server, watch, source.url)

    asked = [request.get("last-event-id") for request in source.requests]
    assert asked == [None, "7", "7", "7"]
    assert watch.status["events"] == 2


def test_it_waits_when_streams_are_over_unless_told_to_end(server: LocalServer) -> None:
    watch = Watch()

    with sse_server(NO_CONTENT) as source, running(server, watch, source.url):
        watch.wait_for(over=1)


def test_what_was_read_is_stored_when_it_is_told_to_end(server: LocalServer) -> None:
    watch = Watch()
    hanging = Hanging(answer(b"data: {}\n\n" * 50))

    with sse_server(hanging) as source:
        with running(server, watch, source.url):
            watch.wait_for(connected=1)
        found = payloads(server)

    assert len(found) == watch.status["events"]
    assert watch.status["lag"] == 0


def test_a_source_that_is_none_ends_all(server: LocalServer) -> None:
    hanging, wrong = Hanging(answer()), answer(status="404 Not Found")

    with (
        sse_server(hanging) as one,
        sse_server(wrong) as two,
        pytest.raises(UnfitSource, match="404"),
    ):
        ingest(server, Watch(), one.url, two.url)


def test_what_came_before_an_error_is_stored(server: LocalServer) -> None:
    with (
        sse_server(answer(b"data: {}\n\n"), answer(status="410 Gone")) as source,
        pytest.raises(UnfitSource, match="410 Gone"),
    ):
        ingest(server, Watch(), source.url)

    assert payloads(server) == [b"{}"]


def test_a_broker_that_refuses_ends_it(server: LocalServer) -> None:
    hanging = Hanging(answer(b"data: {}\n\n"))
    with sse_server(hanging) as source, pytest.raises(ServerRefused) as caught:
        run(
            addresses([source.url], [], "$t"),
            SseOptions(topic="$t"),
            TargetServer(address=server.data),
            Watch(),
        )

    assert caught.value.error == "ReservedName"
