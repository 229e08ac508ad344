"""What a peer may do, and how long, before it has said who it is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.broker.broker import Broker
from penstock.desk.desk import Desk
from penstock.gateway.gateway import LOGIN_BYTES, Gateway
from penstock.gateway.json_consumer import JsonConsumerGateway
from penstock.gateway.json_publisher import JsonPublisherGateway
from penstock.gateway.line import STRAY_LINES, LineGateway
from penstock.gateway.mqtt import MqttGateway, MqttHub
from penstock.gateway.native import NativeGateway
from penstock.gateway.options import (
    JsonOptions,
    LineOptions,
    MqttOptions,
    NativeOptions,
)
from penstock.server.connection import CLOSE_S, LOGIN_READ_BYTES
from penstock.server.listeners import Port, bind
from penstock.server.options import ServerOptions
from tests.unit.server.scene import Client, Echo, House, house, run, turns

LOGIN_S = 30.0
LIMITS = ServerOptions(login_s=LOGIN_S)

Make = Callable[[Broker], Gateway]


def line(broker: Broker) -> Gateway:
    return LineGateway(broker, LineOptions(), authenticate=True)


def consumer(broker: Broker) -> Gateway:
    return JsonConsumerGateway(broker, JsonOptions(), {})


def publisher(broker: Broker) -> Gateway:
    return JsonPublisherGateway(broker, JsonOptions(), authenticate=True)


def native(broker: Broker) -> Gateway:
    return NativeGateway(broker, Desk(broker), NativeOptions())


def mqtt(broker: Broker) -> Gateway:
    return MqttGateway(MqttHub(broker, MqttOptions()))


LONG = [
    (line, b"x" * (LOGIN_BYTES + 1), b"error: line exceeds 16384 bytes\r\n"),
    (line, b"x" * (LOGIN_BYTES + 1) + b"\n", b"error: line exceeds 16384 bytes\r\n"),
    (consumer, b"x" * (LOGIN_BYTES + 1), b"Unknown login error"),
    (publisher, b"x" * (LOGIN_BYTES + 1) + b"\n", b"Unknown login error"),
    (native, (LOGIN_BYTES + 1).to_bytes(4, "little"), b"16385 bytes exceeds 16384"),
    (mqtt, b"\x10\x80\x80\x01" + bytes(100), b""),
]


@pytest.mark.parametrize(("make", "data", "answer"), LONG)
def test_what_is_longer_than_a_login_is_refused_and_ends_the_connection(
    tmp_path: Path, make: Make, data: bytes, answer: bytes
) -> None:
    async def scene() -> None:
        async with house(tmp_path, LIMITS) as one:
            await one.listen(lambda: make(one.broker))
            client = await one.connect()

            await client.send(data)

            assert answer in await client.rest()
            client.close()
            await one.engine.deserted.wait()
            assert one.broker.log.topics() == []

    run(scene())


def test_lines_may_be_long_once_it_is_known_whose_they_are(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path, LIMITS) as one:
            await one.listen(lambda: consumer(one.broker))
            client = await one.connect()

            # In one piece with the login, which is read in small ones.
            await client.send(b"log anna\n" + b"x" * 100_000 + b"\n")

            said = await client.lines(3)
            assert said[1:] == [b"Succesfully logged in!", b"INVALID JSON"]

    run(scene())


def test_lines_that_are_no_login_are_answered_a_few_times(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path, LIMITS) as one:
            await one.listen(lambda: line(one.broker))
            client = await one.connect()

            await client.send(b"\n" * 100_000)

            assert (await client.rest()).count(b"\n") == STRAY_LINES + 1
            await one.engine.deserted.wait()

    run(scene())


class Chatty(Echo):
    """Nobody knows who it is, and it says much to everybody."""

    settled = False

    def output(self, now_s: float, room: int) -> list[bytes]:
        super().output(now_s, room)
        return [bytes(1 << 16)]


class Known(Chatty):
    settled = True


async def deaf(one: House) -> Client:
    """A client that does not read, though much waits for it."""
    client = await one.connect()
    await one.until(lambda: one.engine.connections)
    (connection,) = one.engine.connections.values()
    await one.until(lambda: connection._unread)
    return client


def test_who_does_not_read_is_cut_off_when_its_time_to_log_in_is_over(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with house(tmp_path, LIMITS) as one:
            await one.listen(Chatty)
            await deaf(one)

            one.clock.advance(LOGIN_S + 1)
            one.listeners.check_idle(one.clock.now_s())
            await turns(20)
            assert one.engine.connections, "it has a moment to take the rest"
            one.clock.advance(CLOSE_S + 1)
            one.listeners.check_idle(one.clock.now_s())

            await one.engine.deserted.wait()

    run(scene())


def test_a_byte_now_and_then_does_not_hold_what_is_closed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path, LIMITS) as one:
            await one.listen(Chatty)
            client = await deaf(one)
            one.clock.advance(LOGIN_S + 1)
            for _ in range(int(CLOSE_S) + 2):
                one.listeners.check_idle(one.clock.now_s())
                one.clock.advance(1.0)
                if one.engine.connections:
                    await client.read(1)
                    await turns(10)

            await one.engine.deserted.wait()

    run(scene())


def test_a_slow_subscriber_that_is_known_is_left_alone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path, LIMITS) as one:
            await one.listen(Known)
            await deaf(one)

            for _ in range(100):
                one.clock.advance(60.0)
                one.listeners.check_idle(one.clock.now_s())
                await turns(2)

            assert one.engine.connections

    run(scene())


def test_a_gateway_that_has_ended_is_rid_of_who_does_not_read(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path, LIMITS) as one:
            await one.listen(Known)
            await deaf(one)

            one.gateway().closing = True
            for _ in range(int(CLOSE_S) + 3):
                one.listeners.check_idle(one.clock.now_s())
                one.clock.advance(1.0)

            await one.engine.deserted.wait()

    run(scene())


def test_what_is_read_before_a_login_is_little_at_a_time(tmp_path: Path) -> None:
    class Unknown(Echo):
        settled = False

        def __init__(self) -> None:
            super().__init__()
            self.sizes: list[int] = []

        def receive(self, data: bytes, now_s: float) -> None:
            super().receive(data, now_s)
            self.sizes.append(len(data))
            self.settled = len(self.got) > 10_000

    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Unknown)
            client = await one.connect()
            await asyncio.gather(client.send(bytes(200_000)), client.read(200_006))

            sizes = one.gateways[0].sizes  # type: ignore[attr-defined]
            before = -(-10_001 // LOGIN_READ_BYTES)
            assert max(sizes[:before]) <= LOGIN_READ_BYTES
            assert max(sizes) > LOGIN_READ_BYTES

    run(scene())


# Keep-alives


class Impatient(Known):
    patience_s = 10.0


async def waiting(one: House, patience_s: float = 10.0) -> None:
    one.clock.advance(patience_s + 1)
    one.listeners.check_idle(one.clock.now_s())
    await turns(10)


def test_who_has_said_something_that_nobody_read_was_not_silent(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Impatient)
            client = await deaf(one)
            await client.send(b"ping")

            for _ in range(3):
                await waiting(one)

            assert one.engine.connections
            assert not one.gateway().closing

    run(scene())


def test_who_is_silent_while_nobody_reads_has_its_time_all_the_same(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Impatient)
            await deaf(one)

            await waiting(one)

            assert one.gateway().closing

    run(scene())


def test_patience_begins_anew_when_the_server_reads_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Quiet(Echo):
        patience_s = 10.0

    async def scene() -> None:
        async with house(tmp_path) as one:
            await one.listen(Quiet)
            client = await one.connect()
            await client.read(6)
            congested = True
            monkeypatch.setattr(
                type(one.engine), "congested", property(lambda _: congested)
            )
            await client.send(b"one")
            await turns(20)
            await client.send(b"two")
            for _ in range(3):
                await waiting(one)
            congested = False
            one.engine.kick()

            assert await client.read(6) == b"onetwo"
            one.clock.advance(9.0)
            one.listeners.check_idle(one.clock.now_s())
            assert not one.gateway().closing

            await waiting(one)
            assert one.gateway().closing

    run(scene())


# HTTP where lines are spoken

ANSWER = b"HTTP/1.1 400 Bad Request\r\n\r\nnot here\n"
FETCH = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 12\r\n\r\nx\npub t {}\n"


async def lines_at(one: House, make: Make) -> Client:
    sock = bind("127.0.0.1", 0, "line")
    port = Port(
        name="line",
        sock=sock,
        make_gateway=lambda: make(one.broker),
        http_answer=ANSWER,
    )
    one.listeners.listen(port)
    return await one.client(sock.getsockname())


def open_line(broker: Broker) -> Gateway:
    return LineGateway(broker, LineOptions())


@pytest.mark.parametrize("pieces", [1, 2, 70])
def test_a_request_is_answered_and_nothing_of_it_is_done(
    tmp_path: Path, pieces: int
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            client = await lines_at(one, open_line)
            await client.lines(1)
            size = -(-len(FETCH) // pieces)
            for at in range(0, len(FETCH), size):
                await client.send(FETCH[at : at + size])
                await turns(2)

            assert await client.rest() == ANSWER
            client.close()
            await one.engine.deserted.wait()
            assert one.broker.log.topics() == []

    run(scene())


def test_peers_that_speak_another_protocol_do_not_fill_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)

    async def scene() -> None:
        async with house(tmp_path) as one:
            for _ in range(20):
                client = await lines_at(one, open_line)
                await client.send(FETCH)
                assert (await client.rest()).endswith(ANSWER)
                client.close()
            one.broker.tick(0.0)
            one.broker.tick(60.0)

    run(scene())
    said = [one for one in caplog.records if "speaks another" in one.getMessage()]
    assert [(vars(one)["peer"], vars(one)["count"]) for one in said] == [
        ("127.0.0.1", 1),
        ("127.0.0.1", 19),
    ]


def test_a_handshake_of_tls_is_closed(tmp_path: Path) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            client = await lines_at(one, open_line)
            await client.lines(1)

            await client.send(b"\x16\x03\x01\x02\x00\x01\x00\npub t {}\n")

            assert await client.rest() == b""
            assert one.broker.log.topics() == []

    run(scene())


@pytest.mark.parametrize("first", [b"P", b"POST office", b"GE"])
def test_a_line_that_begins_like_a_request_is_one_all_the_same(
    tmp_path: Path, first: bytes
) -> None:
    async def scene() -> None:
        async with house(tmp_path) as one:
            client = await lines_at(one, open_line)
            await client.lines(1)

            for byte in first:
                await client.send(bytes([byte]))
                await turns(5)
            client.end()

            assert b"unknown command" in await client.rest()

    run(scene())
