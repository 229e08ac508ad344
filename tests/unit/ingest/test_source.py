from __future__ import annotations

import asyncio
import socket

import pytest

from penstock.errors import UnfitSource
from penstock.ingest import source
from penstock.ingest.options import Address
from penstock.ingest.source import StreamSource
from penstock.wire.sse import ServerSentEvent
from tests.sse_server import NO_CONTENT, Hanging, answer, sse_server

PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "BASE_S", 0.001)


def read(
    url: str, last_event_id: str = "", silence_s: float = 0
) -> list[ServerSentEvent]:
    """Everything until the stream is over."""

    async def run() -> list[ServerSentEvent]:
        stream = StreamSource(Address(url, "f"), last_event_id, silence_s=silence_s)
        return [event async for events in stream.events() for event in events]

    return asyncio.run(asyncio.wait_for(run(), PATIENCE_S))


def data(*events: ServerSentEvent) -> list[bytes]:
    return [event.data for event in events]


def test_events_come_until_there_are_no_more() -> None:
    with sse_server(answer(b"data: a\n\ndata: b\n\n"), NO_CONTENT) as server:
        found = read(server.url)

    assert data(*found) == [b"a", b"b"]
    assert server.requests[0]["accept"] == "text/event-stream"
    assert server.requests[0]["accept-encoding"] == "identity"
    assert "last-event-id" not in server.requests[0]


def test_it_goes_on_behind_the_last_event() -> None:
    answers = [
        answer(b"id: 5\ndata: a\n\nid: 6\ndata: lost half"),
        answer(b"id: 6\ndata: b\n\n"),
        NO_CONTENT,
    ]
    with sse_server(*answers) as server:
        found = read(server.url, "4")

    assert data(*found) == [b"a", b"b"]
    assert [one["last-event-id"] for one in server.requests] == ["4", "5", "6"]


@pytest.mark.parametrize("status", ["500 Oh", "503 Later", "429 Too Many Requests"])
def test_a_server_in_trouble_is_asked_again(status: str) -> None:
    answers = [answer(status=status), answer(b"data: a\n\n"), NO_CONTENT]
    with sse_server(*answers) as server:
        found = read(server.url)

    assert data(*found) == [b"a"]


def test_a_server_that_is_silent_for_too_long_is_asked_again() -> None:
    hanging = Hanging(answer(b"id: 1\ndata: a\n\n"))
    with sse_server(hanging, answer(b"data: b\n\n"), NO_CONTENT) as server:
        found = read(server.url, silence_s=0.05)

    assert data(*found) == [b"a", b"b"]
    assert server.requests[1]["last-event-id"] == "1"


def test_the_server_says_how_long_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    # Longer than anybody waits for this test, unless the server is heard.
    monkeypatch.setattr(source, "BASE_S", 2 * PATIENCE_S)
    monkeypatch.setattr(source, "MOST_S", 4 * PATIENCE_S)
    with sse_server(answer(b"retry: 1\ndata: a\n\n"), NO_CONTENT) as server:
        assert data(*read(server.url)) == [b"a"]


def test_a_server_that_is_not_there_yet_is_awaited() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    stream = StreamSource(Address(f"http://127.0.0.1:{port}/", "f"), "", silence_s=0)

    async def run() -> None:
        reading = asyncio.create_task(anext(stream.events()))
        async with asyncio.timeout(PATIENCE_S):
            while stream.failures < 3:  # noqa: ASYNC110 - nobody sets an event
                await asyncio.sleep(0.01)
        reading.cancel()
        await asyncio.wait([reading])

    asyncio.run(run())
    assert not stream.connected


def test_it_says_whether_it_is_connected() -> None:
    async def run(url: str) -> tuple[bool, bool, bool]:
        stream = StreamSource(Address(url, "f"), "", silence_s=0)
        before = stream.connected
        events = stream.events()
        await asyncio.wait_for(anext(events), PATIENCE_S)
        during = stream.connected
        await events.aclose()
        return before, during, stream.connected

    with sse_server(Hanging(answer(b"data: a\n\n"))) as server:
        assert asyncio.run(run(server.url)) == (False, True, False)


@pytest.mark.parametrize(
    ("answered", "text"),
    [
        (answer(status="404 Not Found"), "the server says 404 Not Found"),
        (answer(status="401 Unauthorized"), "the server says 401 Unauthorized"),
        (
            answer(content_type="text/html"),
            "content is text/html, not text/event-stream",
        ),
    ],
)
def test_what_is_no_stream_is_refused(answered: bytes, text: str) -> None:
    with sse_server(answered) as server, pytest.raises(UnfitSource) as caught:
        read(server.url)

    assert str(caught.value) == f"{server.url}: {text}"
    assert len(server.requests) == 1


def test_a_content_type_may_have_parameters() -> None:
    typed = answer(b"data: a\n\n", content_type="text/event-stream; charset=utf-8")
    with sse_server(typed, NO_CONTENT) as server:
        assert data(*read(server.url)) == [b"a"]


def test_a_host_that_is_none_is_named() -> None:
    with pytest.raises(UnfitSource, match=r"http://no\.invalid/x: no such host"):
        read("http://me:secret@no.invalid/x")


def test_redirections_are_followed() -> None:
    with sse_server(answer(b"data: a\n\n"), NO_CONTENT) as target:
        moved = f"HTTP/1.1 302 Found\r\nLocation: {target.url}\r\nConnection: close\r\n"
        with sse_server(f"{moved}Content-Length: 0\r\n\r\n".encode()) as server:
            assert data(*read(server.url)) == [b"a"]


def test_an_event_that_is_too_large_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_EVENT_BYTES", 10)
    with sse_server(answer(b"data: %b\n\n" % (b"x" * 99)), NO_CONTENT) as server:
        (event,) = read(server.url)

    assert (event.data, event.size) == (b"x" * 10, 99)
