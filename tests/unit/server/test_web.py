from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.desk.desk import Desk
from penstock.errors import BadTokenFile
from penstock.http.key_file import TOKENS, KeyFile
from penstock.model.policy import Policy
from penstock.server import password
from penstock.server.listeners import bind
from penstock.server.options import ServerOptions
from penstock.server.settings import Settings
from penstock.server.users import Users
from penstock.server.users_file import set_password
from penstock.server.web import Web
from tests.unit.server.scene import House, house, run
from tests.unit.server.test_http import answer


def web(one: House, folder: Path, users: Path | None = None) -> Web:
    settings = Settings(
        server=ServerOptions(
            data=str(folder), users_file=None if users is None else str(users)
        )
    )
    desk = Desk(one.broker)
    return Web(settings, one.engine, desk, one.clock, one.listeners)


def test_until_it_is_started_there_is_nothing_to_do(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            some = web(one, tmp_path)

            await some.start()
            await some.tick()
            some.close()
            await some.drain()
            await some.abort()

            assert some.login is None
            assert not (tmp_path / TOKENS).exists()

    run(scene())


def test_the_first_start_makes_a_token_that_logs_in(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            logins = []
            for _ in range(2):
                some = web(one, tmp_path)
                with bind("127.0.0.1", 0, "http") as sock:
                    some.prepare(sock)
                    await some.start()
                    port = sock.getsockname()[1]
                    assert some.login is not None
                    address, _, token = some.login.partition("#token=")
                    assert address == f"http://127.0.0.1:{port}/"
                    client = await one.client(("127.0.0.1", port))
                    await client.send(
                        b"GET /v1/topics HTTP/1.1\r\nHost: [::1]\r\n"
                        b"Connection: close\r\n"
                        b"Authorization: Bearer " + token.encode() + b"\r\n\r\n"
                    )
                    assert (await answer(client))[0] == 200
                    await some.tick()
                    logins.append(token)
                    await some.drain()

            assert logins[0] == logins[1]

    run(scene())


def test_a_token_that_was_removed_is_not_told(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            KeyFile(tmp_path).begin(0)
            KeyFile(tmp_path).remove("admin")
            some = web(one, tmp_path)
            with bind("127.0.0.1", 0, "http") as sock:
                some.prepare(sock)
                await some.start()

                assert some.login is None
                some.close()
                await some.abort()

    run(scene())


def test_a_file_of_tokens_that_is_broken_stops_the_start(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            (tmp_path / TOKENS).write_text("{")
            with bind("127.0.0.1", 0, "http") as sock, pytest.raises(BadTokenFile):
                web(one, tmp_path).prepare(sock)

    run(scene())


def test_users_of_the_users_file_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(password, "COST_N", 2)
    path = tmp_path / "users"
    set_password(path, "anna", "right")

    async def scene() -> None:
        async with house(tmp_path / "data", users=Users.load(path)) as one:
            some = web(one, tmp_path / "data", path)
            with bind("127.0.0.1", 0, "http") as sock:
                some.prepare(sock)
                await some.start()
                for said, status in [("YW5uYTpyaWdodA==", 200), ("YW5uYTp4", 401)]:
                    client = await one.client(sock.getsockname())
                    await client.send(
                        b"GET /v1/topics HTTP/1.1\r\nHost: localhost\r\n"
                        b"Authorization: Basic " + said.encode() + b"\r\n\r\n"
                    )
                    assert (await answer(client))[0] == status
                some.close()
                await some.abort()

    run(scene())


def test_a_commit_that_failed_is_tried_again_while_it_drains(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            one.broker.create_topic("t")
            one.broker.subscribe("me", "t", Policy())
            one.engine.kick()
            await one.until(lambda: one.engine.resting and not one.broker.dirty)
            some = web(one, tmp_path)
            with bind("127.0.0.1", 0, "http") as sock:
                some.prepare(sock)
                await some.start()
                one.files.fail("write", "journal")
                client = await one.client(sock.getsockname())
                token = KeyFile(tmp_path).admin_token()
                await client.send(
                    f"POST /v1/subscriptions/me/t/seek HTTP/1.1\r\nHost: localhost\r\n"
                    f"Content-Type: application/json\r\nContent-Length: 11\r\n"
                    f'Authorization: Bearer {token}\r\n\r\n{{"start":0}}'.encode()
                )
                await one.until(lambda: one.engine.broker.log.failure)
                one.clock.advance(1)

                await asyncio.wait_for(some.drain(), 10)

                assert (await answer(client))[0] == 200
                assert await client.rest() == b""

    run(scene())
