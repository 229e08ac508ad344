from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock.client import connect
from penstock.client.feed import Feed
from penstock.delivery.letters import DeadLetter
from penstock.errors import ServerRefused
from penstock.ingest.options import SseOptions
from penstock.ingest.run import Storer
from penstock.ingest.sorting import StreamNote
from penstock.model.event import Event as Stored
from penstock.wire.sse import ServerSentEvent
from tests.local_server import LocalServer, local_server

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LocalServer]:
    with local_server(tmp_path / "data") as server:
        yield server


Make = Callable[..., Storer]


@pytest.fixture
def make(server: LocalServer) -> Iterator[Make]:
    """Makes storers of one stream, one after the other."""
    with ExitStack() as stack:

        def storer(topic: str = "t") -> Storer:
            feed = Feed(server.data, "ingest:test", gateway="ingest sse", retry_s=5)
            stack.enter_context(feed)
            return Storer(feed, SseOptions(topic=topic, key="n"), "http://h/e")

        yield storer


def noted(storer: Storer) -> StreamNote:
    """The note, whoever wrote it."""
    return msgspec.structs.replace(storer.note, run="")


def stored(server: LocalServer, topic: str) -> list[Stored]:
    with connect(server.data) as client:
        batches = client.fetch(topic, 0, 1 << 20).batches
        return [event for batch in batches for event in batch.events()]


def letters(server: LocalServer) -> list[DeadLetter]:
    decode = msgspec.json.Decoder(DeadLetter).decode
    return [decode(event.payload) for event in stored(server, "$dead-letters")]


def numbered(*data: object) -> list[ServerSentEvent]:
    texts = [json.dumps(one).encode() for one in data]
    return [
        ServerSentEvent(text, str(number), "message", len(text))
        for number, text in enumerate(texts, 1)
    ]


def test_events_are_stored_with_their_note(server: LocalServer, make: Make) -> None:
    one = make()

    one.store(numbered({"n": 1}, {"n": 2}, []))

    assert noted(one) == StreamNote("3", 3, 0, 1)
    assert [(event.key, event.payload) for event in stored(server, "t")] == [
        (b"1", b'{"n": 1}'),
        (b"2", b'{"n": 2}'),
    ]
    assert [(one.reason, one.raw, one.gateway) for one in letters(server)] == [
        ("JSON, but no object", b"[]", "ingest sse")
    ]


def test_another_one_goes_on_from_the_note(make: Make) -> None:
    make().store(numbered({"n": 1}))

    other = make()
    assert noted(other) == StreamNote("1", 1, 0, 0)
    other.store(numbered({"n": 2}, {"n": 3}))

    assert noted(make()) == StreamNote("2", 3, 0, 0)


def test_a_batch_of_letters_alone_is_stored(server: LocalServer, make: Make) -> None:
    one = make()

    one.store(numbered(1, 2))

    assert noted(one) == StreamNote("2", 2, 0, 2)
    assert len(letters(server)) == 2


def test_what_the_broker_refuses_is_a_letter_and_the_rest_is_stored(
    server: LocalServer, make: Make
) -> None:
    with connect(server.data) as client:
        client.ask("schemas.register", topic="t", schema=SCHEMA)
    data: list[Any] = [{"n": number} for number in range(20)]
    for wrong in (0, 7, 8, 19):
        data[wrong] = {"n": f"number {wrong}"}
    one = make()

    one.store(numbered(*data))

    good = [json.loads(event.payload)["n"] for event in stored(server, "t")]
    assert good == [number for number in range(20) if number not in (0, 7, 8, 19)]
    assert [json.loads(one.raw or b"")["n"] for one in letters(server)] == [
        f"number {wrong}" for wrong in (0, 7, 8, 19)
    ]
    assert all("schema" in one.reason for one in letters(server))
    assert noted(one) == StreamNote("20", 20, 0, 4)


def test_a_refusal_that_is_not_of_an_event_is_raised(make: Make) -> None:
    one = make("$mine")

    with pytest.raises(ServerRefused) as caught:
        one.store(numbered({"n": 1}))

    assert caught.value.error == "ReservedName"
    assert noted(one) == StreamNote()
