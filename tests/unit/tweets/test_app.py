from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

import pytest

from penstock.tweets.generator import Generator
from penstock.tweets.pace import MessagePace
from penstock.tweets.run import application
from penstock.tweets.stream import Stream, StreamTally
from penstock.tweets.words import as_text
from penstock.wire.sse import SseParser

COUNT = 20


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def get(path: str, query: str = "", last_event_id: str | None = None) -> Answer:
    """What a server says to one request."""
    generator = Generator(1, 1)
    stream = Stream(
        generator=generator,
        pace=MessagePace(0),
        count=COUNT,
        stopping=lambda: False,
        tally=StreamTally(),
    )
    headers = (
        [] if last_event_id is None else [(b"last-event-id", last_event_id.encode())]
    )
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": headers,
    }
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.sleep(60)

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(application({"1": stream})(scope, receive, send))
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return Answer(sent[0]["status"], told, body)


def numbers(answer: Answer) -> list[int]:
    return [int(event.id) for event in SseParser(1 << 20).feed(answer.body)]


def test_the_root_says_what_there_is() -> None:
    answer = get("/")

    told = json.loads(answer.body)
    assert answer.status == 200
    assert told["routes"] == ["/tweets/1", "/emotion_values", "/"]
    assert told["sent"] == {"1": 0}
    assert "panic" in told["message"]


def test_emotion_values_are_text() -> None:
    answer = get("/emotion_values")

    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.body.decode() == as_text()


def test_a_stream_begins_at_1_and_ends() -> None:
    answer = get("/tweets/1")

    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    assert numbers(answer) == list(range(1, COUNT + 1))


def test_a_reader_begins_where_it_wants() -> None:
    assert numbers(get("/tweets/1", "from=15")) == [15, 16, 17, 18, 19, 20]


@pytest.mark.slow
def test_a_reader_goes_on_behind_the_last_event() -> None:
    assert numbers(get("/tweets/1", last_event_id="17")) == [18, 19, 20]
    assert numbers(get("/tweets/1", "from=2", last_event_id="17")) == [18, 19, 20]
    assert len(numbers(get("/tweets/1", last_event_id=""))) == COUNT


@pytest.mark.parametrize("id", ["20", "21", "100000000000000000"])
def test_behind_the_last_message_there_is_nothing(id: str) -> None:
    answer = get("/tweets/1", last_event_id=id)

    assert (answer.status, answer.body) == (204, b"")


@pytest.mark.parametrize("path", ["/nix", "/tweets/3", "/tweets", "/tweets/1/2"])
def test_other_paths_are_not_found(path: str) -> None:
    answer = get(path)

    assert answer.status == 404
    assert json.loads(answer.body)["error"] == f"{path}: not found"


@pytest.mark.parametrize("id", ["x", "-1", "1.5", "²", "1" * 30])
def test_an_id_that_is_none_of_ours_is_refused(id: str) -> None:
    answer = get("/tweets/1", last_event_id=id)

    assert answer.status == 400
    assert "must be a number from 0" in json.loads(answer.body)["error"]


def test_a_start_that_is_no_number_is_refused() -> None:
    assert get("/tweets/1", "from=0").status == 400
