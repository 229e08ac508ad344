from __future__ import annotations

import asyncio
import errno
import logging
import socket
import stat
from pathlib import Path

import pytest

from penstock.access.peer import Peer
from penstock.gateway.gateway import LoginRequest
from penstock.gateway.line import LineGateway
from penstock.gateway.options import LineOptions
from penstock.server import password
from penstock.server.listeners import SOCKET_NAME, Port, bind, bind_local
from penstock.server.logins import LoginResult
from penstock.server.options import ServerOptions
from penstock.server.users import Users
from penstock.server.users_file import UserEntry, set_password
from tests.unit.server.scene import Echo, House, house, run, turns


def test_a_port_in_use_is_named() -> None:
    with bind("127.0.0.1", 0, "line") as first:
        port = first.getsockname()[1]

        with pytest.raises(OSError) as raised:
            bind("127.0.0.1", port, "consumer")

    assert raised.value.errno == errno.EADDRINUSE
    assert raised.value.filename == f"consumer port 127.0.0.1:{port}"


def test_a_port_that_was_let_go_can_be_taken_at_once() -> None:
    with bind("127.0.0.1", 0, "line") as first:
        address = first.getsockname()
        with socket.create_connection(address):
            accepted = None
            while accepted is None:
                try:
                    accepted, _ = first.accept()
                except BlockingIOError:
                    continue
            accepted.close()

    bind("127.0.0.1", address[1], "line").close()


def test_an_address_of_the_other_family_can_be_bound() -> None:
    try:
        sock = bind("::1", 0, "line")
    except OSError:
        pytest.skip("component: IPv6 (not configured)")
    with sock:
        assert sock.family == socket.AF_INET6


def test_a_host_that_is_nowhere_is_an_error() -> None:
    with pytest.raises(OSError):
        bind("192.0.2.1", 0, "line")


@pytest.mark.parametrize("name", ["d", "d" * 200])
def test_the_local_socket_is_for_the_owner_only_however_long_its_path_is(
    tmp_path: Path, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    (folder / SOCKET_NAME).write_text("left by one that was killed")

    with bind_local(str(folder)):
        mode = (folder / SOCKET_NAME).stat().st_mode

    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


def test_a_local_socket_that_cannot_be_made_is_closed_again(tmp_path: Path) -> None:
    (tmp_path / SOCKET_NAME).mkdir()

    with pytest.raises(OSError):
        bind_local(str(tmp_path))


def test_connections_have_a_limit_in_all(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path, ServerOptions(max_connections=2)) as one:
            await one.listen(Echo)
            await one.listen(Echo)
            first = await one.connect()
            second = await one.connect(1)
            await second.read(6)
            assert await first.read(6) == b"hello\n"

            third = await one.connect()
            assert await third.rest() == b"error: too many connections, limit 2\r\n"
            first.close()
            await one.until(lambda: len(one.engine.connections) == 1)

            fourth = await one.connect()
            assert await fourth.read(6) == b"hello\n"

    run(scene())


def test_connections_have_a_limit_for_each_address(tmp_path: Path) -> None:
    async def scene() -> None:
        options = ServerOptions(max_connections_per_address=1)
        async with house(tmp_path, options) as one:
            await one.listen(Echo)
            first = await one.connect()
            await first.read(6)

            second = await one.connect()

            assert await second.rest() == (
                b"error: too many connections from 127.0.0.1, limit 1\r\n"
            )

    run(scene())


@pytest.mark.parametrize("per_address", [0, 1])
def test_the_local_socket_has_no_address_to_be_limited(
    tmp_path: Path, per_address: int
) -> None:
    async def scene() -> None:
        options = ServerOptions(max_connections_per_address=per_address)
        async with house(tmp_path, options) as one:
            with bind_local(str(tmp_path)) as sock:
                port = Port(name="local", sock=sock, make_gateway=Echo)
                one.listeners.listen(port)
                for _ in range(3):
                    client = socket.socket(socket.AF_UNIX)
                    client.setblocking(False)
                    loop = asyncio.get_running_loop()
                    path = str(tmp_path / SOCKET_NAME)
                    await loop.sock_connect(client, path)
                    assert await loop.sock_recv(client, 6) == b"hello\n"
                    one.clients.append(client)  # type: ignore[arg-type]

                assert len(one.engine.connections) == 3

    run(scene())


def test_whoever_does_not_log_in_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scene() -> None:
        async with house(tmp_path, ServerOptions(login_s=30.0)) as one:
            await one.listen(
                lambda: LineGateway(one.broker, LineOptions(), authenticate=True)
            )
            await one.listen(Echo)
            slow, settled = await one.connect(), await one.connect(1)
            await settled.read(6)
            await slow.lines(1)

            for _ in range(30):  # a byte now and then does not help
                one.clock.advance(1.0)
                await slow.send(b"a")
                one.listeners.check_idle(one.clock.now_s())
            assert len(one.engine.connections) == 2
            one.clock.advance(0.125)
            one.listeners.check_idle(one.clock.now_s())

            assert await slow.rest() == b""
            await settled.send(b"here")
            assert await settled.read(4) == b"here"

    run(scene())

    assert "closed: no login within 30 s" in caplog.text


def test_whoever_sends_nothing_for_too_long_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scene() -> None:
        async with house(tmp_path, ServerOptions(idle_s=60.0)) as one:
            await one.listen(Echo)
            silent, busy = await one.connect(), await one.connect()
            await silent.read(6)
            await busy.read(6)

            one.clock.advance(60.0)
            await busy.send(b"x")
            await busy.read(1)
            one.listeners.check_idle(one.clock.now_s())
            assert len(one.engine.connections) == 2
            one.clock.advance(0.125)
            one.listeners.check_idle(one.clock.now_s())

            assert await silent.rest() == b""
            await busy.send(b"y")
            assert await busy.read(1) == b"y"

    run(scene())

    assert "closed: nothing came for 60 s" in caplog.text


def test_without_a_limit_silence_is_allowed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Echo)
            client = await one.connect()
            await client.read(6)

            one.clock.advance(1e6)
            one.listeners.check_idle(one.clock.now_s())
            await client.send(b"x")

            assert await client.read(1) == b"x"

    run(scene())


def test_passwords_are_checked_in_a_thread_and_answered_in_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(password, "COST_N", 2)
    set_password(tmp_path / "users", "anna", "secret")
    users = Users.load(tmp_path / "users")

    async def scene() -> None:
        async with house(tmp_path / "data", users=users) as one:
            await log_in(one, "anna", "wrong", b"error: wrong password for anna")
            await log_in(one, "anna", "secret", b"subscriber anna")
            await log_in(one, "ANNA", "secret", b"subscriber ANNA")
            await log_in(one, "bert", "secret", b"error: wrong password for bert")

    async def log_in(one: House, name: str, word: str, answer: bytes) -> None:
        await one.listen(
            lambda: LineGateway(one.broker, LineOptions(), authenticate=True)
        )
        client = await one.connect(-1)
        await client.lines(1)
        await client.send(f"as {name} {word}\nnonsense\n".encode())
        assert await client.lines(2) == [
            answer,
            b'error: unknown command: ["nonsense"]',
        ]

    run(scene())


def test_a_check_is_asked_for_only_if_there_are_users(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            with pytest.raises(AssertionError, match="only if there are users"):
                one.listeners.check(LoginRequest("anna", "x"), print, Peer("", 0.0))

    run(scene())


def test_a_closed_house_accepts_nobody(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Echo)
            inside = await one.connect()
            await inside.read(6)

            one.listeners.close()
            await asyncio.sleep(0)

            with pytest.raises(ConnectionError):
                await one.connect()
            await inside.send(b"still here")
            assert await inside.read(10) == b"still here"

    run(scene())


def test_who_is_inside_may_log_in_until_the_very_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(password, "COST_N", 2)
    set_password(tmp_path / "users", "anna", "right")

    async def scene() -> None:
        users = Users.load(tmp_path / "users")
        async with house(tmp_path / "data", users=users) as one:
            one.listeners.close()
            found: list[LoginResult] = []
            peer = Peer("line", 0.0, "127.0.0.1")

            one.listeners.check(LoginRequest("anna", "right"), found.append, peer)
            await one.until(lambda: found)

            assert isinstance(found[0], UserEntry)
            one.listeners.end()
            one.listeners.check(LoginRequest("anna", "new"), found.append, peer)
            await turns(10)
            assert len(found) == 1

    run(scene())


def test_what_the_users_file_says_of_a_user_is_told_as_it_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(password, "COST_N", 2)
    path = tmp_path / "users"
    set_password(path, "anna", "right")

    async def scene() -> None:
        async with house(tmp_path / "data", users=Users.load(path)) as one:
            before = one.listeners.find_user("Anna")
            assert before is not None
            assert one.listeners.find_user("anna") == before

            set_password(path, "anna", "another")
            changed = one.listeners.find_user("anna")
            path.write_text("")

            assert changed not in (None, before)
            assert one.listeners.find_user("anna") is None

    run(scene())


class Impatient(Echo):
    """Puts up with ten seconds of silence."""

    patience_s = 10.0

    def timed_out(self, now_s: float) -> None:
        super().timed_out(now_s)
        self.answers.append(b"too late")


def test_whoever_is_silent_for_longer_than_its_protocol_has_it_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Impatient)
            silent, busy = await one.connect(), await one.connect()
            await silent.read(6)
            await busy.read(6)

            one.clock.advance(10.0)
            await busy.send(b"x")
            await busy.read(1)
            one.listeners.check_idle(one.clock.now_s())
            assert len(one.engine.connections) == 2
            one.clock.advance(0.125)
            one.listeners.check_idle(one.clock.now_s())

            assert await silent.rest() == b"too late"
            await busy.send(b"y")
            assert await busy.read(1) == b"y"

    run(scene())

    assert "closed: nothing came for 10 s" in caplog.text
