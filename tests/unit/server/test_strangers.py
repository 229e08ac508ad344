"""Those whom nobody knows are few; others take their places, or wait outside."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from penstock.access.grants import OPEN
from penstock.errors import LoginRefused
from penstock.gateway.gateway import LoginRequest
from penstock.http.guard import PLACE
from penstock.server.http import PIECE_BYTES, UNTAKEN_BYTES
from penstock.server.listeners import Listeners
from penstock.server.logins import LoginAnswer
from penstock.server.options import ServerOptions
from penstock.server.strangers import ConnectionSlot, Strangers
from tests.unit.server.scene import Client, Echo, House, house, run, turns
from tests.unit.server.test_freed import http

SOON_S = 0.05
NEVER_S = 1000.0


class Asking(Echo):
    """Wants a password."""

    def __init__(self) -> None:
        super().__init__()
        self.settled = False

    def logged_in(self, ok: bool, now_s: float) -> None:
        super().logged_in(ok, now_s)
        self.settled = ok


def options(stranger_s: float) -> ServerOptions:
    return ServerOptions(max_strangers=2, stranger_s=stranger_s)


def strangers(one: House) -> int:
    return len(one.listeners._strangers)


async def greeted(one: House) -> Client:
    client = await one.connect()
    assert await client.read(6) == b"hello\n"
    return client


async def waits(one: House) -> asyncio.Task[bytes]:
    """Somebody who is not let in."""
    client = await one.connect()
    hearing = asyncio.ensure_future(client.read(6))
    await turns(50)
    assert not hearing.done()
    return hearing


def test_who_has_waited_longest_makes_room(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path, options(SOON_S)) as one:
            await one.listen(Asking)
            first, second = await greeted(one), await greeted(one)

            third = await greeted(one)

            assert await first.rest() == b""
            assert strangers(one) == 2
            await second.send(b"x")
            await third.send(b"x")
            assert (await second.read(1), await third.read(1)) == (b"x", b"x")

    run(scene())


def test_who_is_new_keeps_its_place_and_others_wait_for_one(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path, options(NEVER_S)) as one:
            await one.listen(Asking)
            first, second = await greeted(one), await greeted(one)
            hearing = await waits(one)

            first.close()

            assert await hearing == b"hello\n"
            await second.send(b"x")
            assert await second.read(1) == b"x"

    run(scene())


def test_who_needs_no_login_is_no_stranger(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path, options(NEVER_S)) as one:
            await one.listen(Echo)
            for _ in range(5):
                await greeted(one)
            assert strangers(one) == 0

    run(scene())


@pytest.mark.parametrize(("password", "left"), [("right", 0), ("wrong", 2)])
def test_whose_password_is_checked_is_no_stranger_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str, left: int
) -> None:
    answers: list[Callable[[], None]] = []

    def check(
        door: Listeners, request: LoginRequest, answer: LoginAnswer, _: object
    ) -> None:
        wrong = LoginRefused("wrong")
        answers.append(lambda: answer(wrong if password == "wrong" else OPEN))

    monkeypatch.setattr(Listeners, "check", check)

    async def scene() -> None:
        async with house(tmp_path, options(NEVER_S)) as one:
            await one.listen(Asking)
            for _ in range(2):
                await (await greeted(one)).send(f"login {password}\n".encode())
            await one.until(lambda: len(answers) == 2)
            assert strangers(one) == 0
            await greeted(one)
            one.clients[-1].close()
            await one.until(lambda: strangers(one) == 0)

            for answer in answers:
                answer()

            assert strangers(one) == left

    run(scene())


def test_http_is_a_stranger_until_a_request_says_who_it_is(tmp_path: Path) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/known":
            scope["state"][PLACE].known()
        await PlainTextResponse("hello")(scope, receive, send)

    async def scene() -> None:
        async with house(tmp_path, options(NEVER_S)) as one, http(one, app) as port:
            client = await one.client(("127.0.0.1", port))
            await one.until(lambda: strangers(one) == 1)
            await asked(client)
            assert strangers(one) == 1
            await asked(client, "/known")
            assert strangers(one) == 0
            await asked(client)
            assert strangers(one) == 0

    run(scene())


async def asked(client: Client, path: str = "/") -> None:
    """Somebody who has asked and was answered."""
    await client.send(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    got = b""
    while not got.endswith(b"hello"):
        data = await client.read(1)
        assert data, got
        got += data


def test_who_asks_what_anybody_may_ask_is_no_newer_by_that(tmp_path: Path) -> None:
    async def scene() -> None:
        app = PlainTextResponse("hello")
        async with house(tmp_path, options(SOON_S)) as one, http(one, app) as port:
            first = await one.client(("127.0.0.1", port))
            await one.until(lambda: strangers(one) == 1)
            second = await one.client(("127.0.0.1", port))
            await one.until(lambda: strangers(one) == 2)
            await asyncio.sleep(2 * SOON_S)  # both have had their time
            await asked(second)
            await asked(first)

            await asked(await one.client(("127.0.0.1", port)))

            assert await first.rest() == b""
            await asked(second)

    run(scene())


def test_who_comes_back_is_where_it_was(tmp_path: Path) -> None:
    async def scene() -> None:
        loop = asyncio.get_running_loop()
        crowd = Strangers(loop, 3, NEVER_S)
        gone: list[int] = []
        places = [ConnectionSlot(lambda: None, crowd) for _ in range(5)]
        for number, place in enumerate(places):
            place.ends_by(partial(gone.append, number))
        for place in places[:3]:
            place.waits()
        for number in (1, 0, 2, 0):
            places[number].excused()
        for number in (2, 0, 0, 1):
            places[number].waits()
        assert len(crowd) == 3

        crowd._patience_s = -1.0  # all are late
        for place in places[3:]:
            place.waits()

        assert gone == [0, 1]
        places[2].known()
        places[2].waits()
        assert len(crowd) == 2

    run(scene())


def test_who_has_yet_to_send_its_body_is_a_stranger(tmp_path: Path) -> None:
    begun, going_on = [], asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.append(scope["path"])
        while (await receive())["more_body"]:
            pass
        await going_on.wait()
        await PlainTextResponse("hello")(scope, receive, send)

    post = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"

    async def scene() -> None:
        async with house(tmp_path, options(NEVER_S)) as one, http(one, app) as port:
            for _ in range(2):
                client = await one.client(("127.0.0.1", port))
                await client.send(post + b"x")
            await one.until(lambda: len(begun) == 2)
            assert strangers(one) == 2

            await client.send(b"x")
            await one.until(lambda: strangers(one) == 1)  # it waits for us

            # With the beginning of another one behind it.
            await client.send(post)
            going_on.set()
            await one.until(lambda: strangers(one) == 2)

    run(scene())


@pytest.mark.slow
def test_who_does_not_read_is_a_stranger_and_has_little_waiting(tmp_path: Path) -> None:
    large = PlainTextResponse("x" * (4 << 20) + "hello")
    served = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        served.append(scope["path"])
        await large(scope, receive, send)

    async def scene() -> None:
        async with house(tmp_path, options(NEVER_S)) as one:
            web = http(one, app)
            async with web as port:
                client = await one.client(("127.0.0.1", port))
                await client.send(b"GET /1 HTTP/1.1\r\nHost: x\r\n\r\n")
                await one.until(lambda: served and strangers(one) == 1)
                await client.send(b"GET /2 HTTP/1.1\r\nHost: x\r\n\r\n")
                await turns(100)
                [connection] = web._server._connections
                most = UNTAKEN_BYTES + PIECE_BYTES + len(large.raw_headers) * 100
                assert connection.taking.untaken() <= most
                assert served == ["/1"]

                for _ in range(2):
                    got = await client.read(len(large.body))
                    while not got.endswith(b"hello"):
                        got += await client.read(1)
                    assert got.count(b"x") >= len(large.body) - 5
                assert served == ["/1", "/2"]

    run(scene())


def test_a_crowd_is_said_once_a_minute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def scene() -> None:
        async with house(tmp_path, options(SOON_S)) as one:
            await one.listen(Asking)
            for _ in range(2):
                for _ in range(5):
                    await greeted(one)
                one.listeners.check_idle(one.engine.now_s())

    run(scene())

    assert [record.__dict__["action"] for record in caplog.records] == [
        "strangers_crowded"
    ]
    assert "more than 2 connections" in caplog.text
    assert "3 were cut off" in caplog.text
