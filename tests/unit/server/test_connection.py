from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from penstock.access.grants import OPEN, Grants, Rule
from penstock.access.peer import Peer
from penstock.errors import LoginRefused
from penstock.gateway.gateway import LoginRequest
from penstock.server import connection as connection_module
from penstock.server.connection import Connection, PeerCertificate
from penstock.server.logins import LoginAnswer
from penstock.server.options import ServerOptions
from penstock.server.password import Password
from penstock.server.users_file import UserEntry
from tests.unit.server.scene import Client, Echo, House, house, run, turns

ANNA = UserEntry(
    password=Password(n=2, r=1, p=1, salt=b"salt", hash=b"hash"),
    grants=Grants(user="anna", rules=(Rule("publish", "sensors/#"),)),
)
SMALL = ServerOptions(output_buffer_bytes=1 << 16, read_bytes=1 << 12)


def test_a_gateway_gets_what_comes_and_its_output_goes_out(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Echo)
            client = await one.connect()

            assert await client.read(6) == b"hello\n"
            await client.send(b"one")
            assert await client.read(3) == b"one"
            client.close()
            await one.engine.deserted.wait()

            assert one.gateway().left
            assert one.gateway().got == b"one"

    run(scene())


def test_a_woken_gateway_sends_without_being_asked(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Echo)
            client = await one.connect()
            await client.read(6)

            one.gateway().answers.append(b"news")
            one.broker.awake[one.gateway()] = None
            one.engine.kick()

            assert await client.read(4) == b"news"

    run(scene())


def test_little_room_for_output_delays_and_loses_nothing(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path, ServerOptions(output_buffer_bytes=10)) as one:
            await one.listen(Echo)
            client = await one.connect()
            await client.read(6)

            one.gateway().answers.extend([b"x" * 30] * 5)
            one.broker.awake[one.gateway()] = None
            one.engine.kick()

            assert await client.read(150) == b"x" * 150

    run(scene())


def test_a_password_that_is_checked_too_late_lets_nobody_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        answers: list[LoginAnswer] = []
        async with house(tmp_path) as one:
            monkeypatch.setattr(
                one.listeners, "check", lambda _, answer, peer: answers.append(answer)
            )
            await one.listen(Echo)
            client = await one.connect()
            await client.read(6)
            await client.send(b"login secret")
            await client.read(12)
            gateway = one.gateway()
            one.engine.connections[gateway].close("it takes too long")
            await one.engine.deserted.wait()

            answers[0](ANNA)

            assert b"in\n" not in gateway.answers

    run(scene())


def test_the_end_of_the_peer_is_told_once_and_answered_before_the_close(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Echo)
            client = await one.connect()

            await client.send(b"last")
            client.end()

            assert await client.rest() == b"hello\nlast"
            assert one.gateway().ends == 1

    run(scene())


def test_the_end_is_told_once_although_the_answer_takes_a_while(
    tmp_path: Path,
) -> None:
    """The answer does not fit, so the connection is resumed after its end."""

    class Talker(Echo):
        def eof(self, now_s: float) -> None:
            super().eof(now_s)
            self.answers.append(bytes(16 << 20))

    async def scene() -> None:
        async with house(tmp_path, SMALL) as one:
            await one.listen(Talker)
            client = await one.connect()

            client.end()
            await one.until(lambda: one.gateways and one.gateway().ends)

            assert len(await client.rest()) == len(b"hello\n") + (16 << 20)
            assert one.gateway().ends == 1

    run(scene())


def test_a_gateway_that_is_done_is_closed_when_its_output_is_out(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Echo)
            client = await one.connect()
            await client.read(6)

            one.gateway().closing = True
            await client.send(b"bye")

            assert await client.rest() == b"bye"

    run(scene())


def test_a_gateway_that_waits_for_a_commit_is_not_closed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Echo)
            client = await one.connect()
            await client.read(6)
            gateway = one.gateway()
            one.broker.waiting[gateway] = None
            gateway.closing = True

            await client.send(b"bye")
            assert await client.read(3) == b"bye"
            assert one.engine.connections

            gateway.answers.append(b" stored")
            one.broker.create_topic("t")  # a commit, which wakes who waits
            one.engine.kick()

            assert await client.rest() == b" stored"

    run(scene())


@pytest.mark.parametrize("step", ["connected", "receive", "output", "eof"])
def test_a_mistake_costs_its_connection_and_nobody_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Echo)
            other = await one.connect()
            await other.read(6)

            failing = Echo()
            failing.fails = step
            await one.listen(lambda: failing)
            client = await one.connect(1)
            await client.send(b"x")
            client.end()
            await client.rest()
            await one.until(lambda: failing.left)

            await other.send(b"still here")
            assert await other.read(10) == b"still here"
            client.close()

    run(scene())

    assert actions(caplog) == ["connection_failed"]
    assert f"{step} fails as planned" in caplog.text


def test_a_mistake_at_the_very_end_is_told_and_nothing_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Echo)
            client = await one.connect()
            await client.read(6)
            one.gateway().fails = "disconnected"

            client.close()
            await one.engine.deserted.wait()

            assert one.gateway().left

    run(scene())

    assert actions(caplog) == ["connection_failed"]


@pytest.mark.slow
def test_a_peer_that_does_not_read_is_not_read_and_costs_a_bounded_buffer(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with house(tmp_path, SMALL) as one:
            await one.listen(Echo)
            client = await one.connect()
            await one.until(lambda: one.gateways)
            gateway = one.gateway()
            chunk = bytes(1 << 16)

            sent = await send_until_stuck(client, chunk)
            taken = len(gateway.got)
            await turns(100)
            assert len(gateway.got) == taken, "it goes on taking in"

            # What left was read here, is in the buffer, or is with the system.
            echoed = await client.read(6 + taken)
            assert len(echoed) == 6 + taken
            client.end()
            rest = await client.rest()
            assert len(rest) == sent - taken

    run(scene())


def test_nothing_is_made_for_a_peer_that_does_not_read(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path, SMALL) as one:
            await one.listen(Echo)
            await one.connect()
            await one.until(lambda: one.gateways)
            gateway = one.gateway()
            for _ in range(200):
                gateway.answers.append(bytes(1 << 16))
                one.broker.awake[gateway] = None
                one.engine.kick()
                await turns(2)

            assert gateway.answers, "everything was taken"

    run(scene())


def test_input_is_held_while_a_password_is_checked(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            door = Door()
            client = await behind(one, door)

            await client.send(b"login secret\n")
            assert await client.read(13) == b"login secret\n"
            await client.send(b"more")
            client.end()
            await turns(20)
            gateway = door.gateway
            assert (gateway.got, gateway.ends) == (b"login secret\n", 0)
            assert door.requests == [LoginRequest("anna", "secret")]
            assert gateway.grants is OPEN
            door.answers[0](ANNA)

            assert await client.rest() == b"in\nmore"
            assert gateway.ends == 1
            assert gateway.grants is ANNA.grants

    run(scene())


def test_a_peer_may_leave_while_its_password_is_checked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            door = Door()
            client = await behind(one, door)
            await client.send(b"login secret\n")
            await client.read(13)

            for connection in list(one.engine.connections.values()):
                connection.abort()
            await one.engine.deserted.wait()
            door.answers[0](ANNA)
            await turns(10)

    run(scene())

    assert actions(caplog) == []


def test_a_second_login_behind_the_first_is_checked_after_it(tmp_path: Path) -> None:
    class Twice(Echo):
        def logged_in(self, ok: bool, now_s: float) -> None:
            super().logged_in(ok, now_s)
            if not ok:
                self.login = LoginRequest("anna", "second")

    async def scene() -> None:
        async with house(tmp_path) as one:
            door = Door(Twice())
            client = await behind(one, door)
            await client.send(b"login first\n")
            await client.read(12)

            door.answers[0](LoginRefused("wrong"))
            assert await client.read(4) == b"out\n"
            door.answers[1](ANNA)

            assert await client.read(3) == b"in\n"
            assert [one.password for one in door.requests] == ["first", "second"]

    run(scene())


def test_what_came_while_the_server_is_congested_is_taken_in_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Echo)
            client = await one.connect()
            await client.read(6)
            congested = True
            monkeypatch.setattr(
                type(one.engine), "congested", property(lambda _: congested)
            )

            await client.send(b"wait")
            await turns(20)
            assert one.gateway().got == b""
            congested = False
            one.engine.kick()

            assert await client.read(4) == b"wait"
            client.end()
            assert await client.rest() == b""
            assert one.gateway().ends == 1

    run(scene())


def test_a_server_that_ends_reads_no_more_and_sends_the_last_answers(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Echo)
            client = await one.connect()
            await client.read(6)
            (connection,) = one.engine.connections.values()

            connection.stop_reading()
            await client.send(b"too late")
            one.gateway().answers.append(b"goodbye")
            await turns(10)
            connection.finish()

            assert await client.rest() == b"goodbye"
            assert one.gateway().got == b""
            connection.finish()
            connection.close("it is gone already")

    run(scene())


def test_a_peer_at_a_local_socket_has_no_address(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            ours, theirs = socket.socketpair()
            door = Door()
            await asyncio.get_running_loop().create_connection(
                lambda: door.connection(one), sock=ours
            )

            assert door.made[0].address == ""
            theirs.close()
            await one.engine.deserted.wait()

    run(scene())


class Door:
    """Keeps the passwords for later."""

    def __init__(self, gateway: Echo | None = None) -> None:
        self.gateway = gateway or Echo()
        self.requests: list[LoginRequest] = []
        self.answers: list[LoginAnswer] = []
        self.made: list[Connection] = []

    def named(self, peercert: PeerCertificate, peer: Peer) -> UserEntry | None:
        return None

    def check(self, request: LoginRequest, answer: LoginAnswer, peer: Peer) -> None:
        self.requests.append(request)
        self.answers.append(answer)

    def connection(self, one: House) -> Connection:
        made = Connection(one.engine, self.gateway, ServerOptions(), self)
        self.made.append(made)
        return made


async def behind(one: House, door: Door) -> Client:
    """A client of the only connection behind that door."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: door.connection(one), "127.0.0.1", 0)
    client = await one.client(server.sockets[0].getsockname())
    await one.until(lambda: door.made and door.made[0].address)
    server.close()
    if one.engine.connections:
        await client.read(6)
    return client


async def send_until_stuck(client: Client, chunk: bytes) -> int:
    """Send until nobody takes it any more; how much that was."""
    sent = 0
    idle = 0
    while idle < 200:
        try:
            sent += client.sock.send(chunk)
            idle = 0
        except BlockingIOError:
            idle += 1
        await asyncio.sleep(0)
    return sent


def actions(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.action for one in caplog.records if hasattr(one, "action")]


class Lingering(Echo):
    """Has a last word, and hears the peer out."""

    lingers = True
    patience_s = 10.0

    def receive(self, data: bytes, now_s: float) -> None:
        super().receive(data, now_s)
        if b"bye" in data:
            self.closing = True

    def timed_out(self, now_s: float) -> None:
        super().timed_out(now_s)
        self.answers.append(b"too late")

    def part(self, now_s: float) -> None:
        self.answers.append(b"closing time")


def test_a_peer_that_goes_on_sending_gets_the_last_word(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Lingering)
            client = await one.connect()
            await client.read(6)

            await client.send(b"bye")
            await one.until(lambda: one.gateway().left)
            for _ in range(100):
                await client.send(bytes(1000))

            assert await client.rest() == b"bye"
            assert one.gateway().got == b"bye"
            assert one.engine.connections
            client.end()
            await one.engine.deserted.wait()

    run(scene())


def test_a_peer_is_not_heard_out_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "LINGER_S", 0.01)

    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Lingering)
            client = await one.connect()

            await client.send(b"bye")

            await one.engine.deserted.wait()

    run(scene())


def test_whoever_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Lingering)
            client = await one.connect()
            await client.read(6)

            await client.send(b"bye")
            client.end()

            assert await client.rest() == b"bye"
            await one.engine.deserted.wait()

    run(scene())


def test_the_last_word_of_a_server_that_ends_is_sent(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Lingering)
            client = await one.connect()
            await client.read(6)

            for connection in list(one.engine.connections.values()):
                connection.finish()

            assert await client.rest() == b"closing time"

    run(scene())
