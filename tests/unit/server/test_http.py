"""The listener over a real socket, with applications as small as they can be."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from penstock.http.guard import PLACE
from penstock.http.options import HttpOptions
from penstock.server.http import HttpServer
from penstock.server.listeners import bind
from penstock.server.options import ServerOptions
from tests.unit.server.scene import Client, House, house, run

GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


class Served:
    def __init__(self, process: House, server: HttpServer, port: int) -> None:
        self.process = process
        self.server = server
        self.port = port

    async def client(self) -> Client:
        return await self.process.client(("127.0.0.1", self.port))

    async def until(self, condition: Callable[[], object]) -> None:
        await self.process.until(condition)


@asynccontextmanager
async def served(
    folder: Path,
    app: ASGIApp | None = None,
    options: HttpOptions | None = None,
    limits: ServerOptions | None = None,
    end_streams: Callable[[], None] = lambda: None,
) -> AsyncIterator[Served]:
    async with house(folder, limits) as one:
        server = HttpServer(
            app or PlainTextResponse("hello"),
            options or HttpOptions(),
            one.listeners,
            end_streams,
        )
        with bind("127.0.0.1", 0, "http") as sock:
            await server.start(sock)
            try:
                yield Served(one, server, sock.getsockname()[1])
            finally:
                server.close()
                await server.abort()


async def answer(client: Client) -> tuple[int, dict[str, str], bytes]:
    """The next answer, whose body has a length."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = await client.read(1)
        assert data, head
        head += data
    first, *lines = head.decode().split("\r\n")[:-2]
    headers = dict(line.lower().split(": ", 1) for line in lines)
    body = await client.read(int(headers.get("content-length", 0)))
    return int(first.split()[1]), headers, body


def test_requests_are_answered_one_after_the_other(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path) as one:
            client = await one.client()
            for _ in range(3):
                await client.send(GET)
                status, headers, body = await answer(client)

                assert (status, body) == (200, b"hello")
                assert "date" in headers
                assert "server" not in headers
            assert len(one.server) == 1

    run(scene())


def test_connections_count_among_all_others(tmp_path: Path) -> None:
    async def scene() -> None:
        limits = ServerOptions(max_connections=1)
        async with served(tmp_path, limits=limits) as one:
            first = await one.client()
            await first.send(GET)
            await answer(first)

            second = await one.client()
            status, headers, body = await answer(second)

            assert status == 429
            assert headers["connection"] == "close"
            assert headers["x-content-type-options"] == "nosniff"
            assert json.loads(body)["error"] == "LimitReached"
            assert await second.rest() == b""
            first.close()
            await one.until(lambda: not len(one.server))
            third = await one.client()
            await third.send(GET)
            assert (await answer(third))[0] == 200

    run(scene())


@pytest.mark.parametrize(
    ("data", "code", "text"),
    [
        (b"hello\r\n\r\n", 400, "not HTTP"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 5000, 431, "max_header_bytes is 4096"),
    ],
)
def test_what_is_not_http_is_refused_with_a_problem(
    tmp_path: Path, data: bytes, code: int, text: str
) -> None:
    async def scene() -> None:
        options = HttpOptions(max_header_bytes=4096)
        async with served(tmp_path, options=options) as one:
            client = await one.client()
            await client.send(data)

            status, headers, body = await answer(client)

            assert status == code
            assert headers["content-type"] == "application/problem+json"
            assert text in json.loads(body)["detail"]
            assert await client.rest() == b""

    run(scene())


def test_headers_and_silence_have_their_time(tmp_path: Path) -> None:
    async def scene() -> None:
        options = HttpOptions(header_s=0.05, keep_alive_s=0.1)
        async with served(tmp_path, options=options) as one:
            silent, slow = await one.client(), await one.client()
            await one.until(lambda: len(one.server) == 2)
            await slow.send(b"GET / HTTP/1.1\r\n")
            await asyncio.sleep(0.15)
            await one.server.tick()

            status, _, body = await answer(slow)

            assert status == 408
            assert "http.header_s" in json.loads(body)["detail"]
            assert await silent.rest() == b""
            await one.until(lambda: not len(one.server))

    run(scene())


def test_a_request_that_is_answered_slowly_is_left_alone(tmp_path: Path) -> None:
    async def scene() -> None:
        go = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await go.wait()
            await PlainTextResponse("late")(scope, receive, send)

        options = HttpOptions(header_s=0.01, keep_alive_s=0.01)
        async with served(tmp_path, app, options) as one:
            client = await one.client()
            await client.send(GET)
            await one.until(lambda: one.server._server.server_state.tasks)
            await asyncio.sleep(0.05)

            await one.server.tick()
            go.set()

            assert (await answer(client))[2] == b"late"

    run(scene())


def test_who_goes_on_sending_what_was_refused_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.server.http.LINGER_S", 0.0)

    async def scene() -> None:
        async with served(tmp_path) as one:
            client = await one.client()
            await client.send(
                b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nx"
            )
            assert (await answer(client))[0] == 200
            await asyncio.sleep(0.001)

            await one.server.tick()

            assert await client.rest() == b""

    run(scene())


LARGE = "x" * (64 << 20)


def asking(port: int) -> socket.socket:
    """Somebody who has asked, and decides when to read."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setblocking(False)
    sock.send(GET)
    return sock


@pytest.mark.slow
def test_who_does_not_take_its_answer_is_cut_off(tmp_path: Path) -> None:
    async def scene() -> None:
        options = HttpOptions(write_s=0.3)
        async with served(tmp_path, PlainTextResponse(LARGE), options) as one:
            with asking(one.port), asking(one.port) as slow:
                await one.until(lambda: len(one.server) == 2)

                for _ in range(400):
                    with suppress(BlockingIOError):
                        slow.recv(1 << 15)
                    await one.server.tick()
                    await asyncio.sleep(0.005)
                    if len(one.server) == 1:
                        break

                # Who reads, however slowly, is still there.
                for _ in range(100):
                    with suppress(BlockingIOError):
                        slow.recv(1 << 15)
                    await one.server.tick()
                    await asyncio.sleep(0.005)
                assert len(one.server) == 1

    run(scene())


def test_who_goes_without_its_answers_is_gone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with served(tmp_path, PlainTextResponse(LARGE)) as one:
            with asking(one.port) as sock:
                sock.send(GET * 2)  # nothing is read behind that
                await one.until(lambda: len(one.server) == 1)
                await asyncio.sleep(0.05)

            async with asyncio.timeout(30):
                await one.until(lambda: not len(one.server))

    run(scene())


@pytest.mark.slow
def test_who_does_not_take_its_answer_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.server.http.DRAIN_WRITE_S", 0.2)

    async def scene() -> None:
        async with served(tmp_path, PlainTextResponse(LARGE)) as one:
            with asking(one.port):
                await one.until(lambda: len(one.server) == 1)

                async with asyncio.timeout(30):
                    await one.server.drain()

            assert len(one.server) == 0

    run(scene())


def test_draining_answers_what_was_begun_and_ends_the_rest(tmp_path: Path) -> None:
    async def scene() -> None:
        ended = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await ended.wait()
            await PlainTextResponse("at last")(scope, receive, send)

        async with served(tmp_path, app, end_streams=ended.set) as one:
            idle, asking = await one.client(), await one.client()
            await asking.send(GET)
            await one.until(lambda: one.server._server.server_state.tasks)

            await one.server.drain()

            status, headers, body = await answer(asking)
            assert (status, body) == (200, b"at last")
            assert await asking.rest() == b""
            assert await idle.rest() == b""
            with pytest.raises(OSError):
                await one.client()

    run(scene())


def test_whoever_is_left_is_cut_off(tmp_path: Path) -> None:
    async def scene() -> None:
        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await asyncio.Event().wait()

        async with served(tmp_path, app) as one:
            client = await one.client()
            await client.send(GET)
            await one.until(lambda: one.server._server.server_state.tasks)

            await one.server.abort()

            assert await client.rest() == b""

    run(scene())


def test_a_websocket_is_counted_once_until_it_ends(tmp_path: Path) -> None:
    async def echo(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await PlainTextResponse("hello")(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})

    async def scene() -> None:
        limits = ServerOptions(max_connections=1)
        async with served(tmp_path, echo, limits=limits) as one:
            url = f"ws://127.0.0.1:{one.port}/"
            async with connect(url) as socket:
                await socket.send("hi")
                assert await socket.recv() == "hi"
                assert len(one.server) == 1
                await one.server.tick()
                full = await one.client()
                assert (await answer(full))[0] == 429
            await one.until(lambda: not len(one.server))
            client = await one.client()
            await client.send(GET)
            assert (await answer(client))[0] == 200

    run(scene())


def test_draining_waits_until_websockets_have_said_goodbye(tmp_path: Path) -> None:
    async def scene() -> None:
        ended = asyncio.Event()

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            await send({"type": "websocket.accept"})
            await ended.wait()
            await send({"type": "websocket.send", "text": "goodbye"})
            await send({"type": "websocket.close", "code": 1001})

        async with served(tmp_path, app, end_streams=ended.set) as one:
            async with connect(f"ws://127.0.0.1:{one.port}/") as socket:
                draining = asyncio.create_task(one.server.drain())

                assert await socket.recv() == "goodbye"
                with pytest.raises(ConnectionClosed) as raised:
                    await socket.recv()
                await draining
            assert raised.value.rcvd is not None
            assert raised.value.rcvd.code == 1001

    run(scene())


UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.mark.parametrize(
    ("code", "within"), [(1000, "CLOSE_S"), (1003, "CLOSE_S"), (1008, "CUT_OFF_S")]
)
@pytest.mark.parametrize("known", [True, False])
def test_a_websocket_that_does_not_say_goodbye_is_ended(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    within: str,
    *,
    known: bool,
) -> None:
    monkeypatch.setattr(f"penstock.server.websocket.{within}", 0.05)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if known:
            scope["state"][PLACE].known()
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": code})

    async def scene() -> None:
        async with served(tmp_path, app) as one:
            client = await one.client()
            await client.send(UPGRADE)

            async with asyncio.timeout(4):  # one of the two is larger
                assert (await client.rest()).endswith(code.to_bytes(2, "big"))
                await one.until(lambda: not len(one.server))

    run(scene())


def test_a_message_larger_than_a_body_is_refused(tmp_path: Path) -> None:
    async def scene() -> None:
        got: list[Any] = []

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await receive()
            await send({"type": "websocket.accept"})
            got.append(await receive())

        options = HttpOptions(max_body_bytes=1024)
        async with (
            served(tmp_path, app, options) as one,
            connect(f"ws://127.0.0.1:{one.port}/") as socket,
        ):
            await socket.send("x" * 1025)
            with pytest.raises(ConnectionClosed):
                await socket.recv()

            assert got[0]["type"] == "websocket.disconnect"

    run(scene())
