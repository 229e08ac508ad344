"""A user who publishes faster than it may waits: real sockets, a clock of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.access.quota import Quota
from penstock.broker.broker import Broker
from penstock.desk.desk import Desk
from penstock.gateway.gateway import Gateway
from penstock.gateway.json_publisher import JsonPublisherGateway
from penstock.gateway.line import LineGateway
from penstock.gateway.mqtt import MqttGateway, MqttHub
from penstock.gateway.native import NativeGateway
from penstock.gateway.options import (
    JsonOptions,
    LineOptions,
    MqttOptions,
    NativeOptions,
)
from penstock.server import password
from penstock.server.options import ServerOptions
from penstock.server.users import Users
from penstock.server.users_file import set_password, set_quota
from penstock.wire.mqtt import Connect, Publishes, render_connect, render_publish
from penstock.wire.native import Hello, Publish, encode
from tests.unit.server.scene import Client, House, house, run

# Silence that MQTT clients ask us to put up with.
KEEP_ALIVE_S = 5


class Protocol(NamedTuple):
    make: Callable[[Broker], Gateway]
    login: Callable[[str], bytes]
    publish: Callable[[int], bytes]
    """So many events, in one write."""


def line_events(count: int) -> bytes:
    return b"pub t {}\n" * count


def mqtt_login(user: str) -> bytes:
    return render_connect(
        Connect(
            version=4,
            client_id=user,
            clean_start=True,
            keep_alive=KEEP_ALIVE_S,
            user=user,
            password=b"x",
        )
    )


def mqtt_events(count: int) -> bytes:
    packet = Publishes(
        topic="t",
        qos=1,
        retain=False,
        dup=False,
        payloads=[b"x"] * count,
        packet_ids=list(range(1, count + 1)),
    )
    return render_publish(4, packet)


PROTOCOLS = {
    "line": Protocol(
        lambda broker: LineGateway(broker, LineOptions(), authenticate=True),
        lambda user: f"as {user} x\n".encode(),
        line_events,
    ),
    "json": Protocol(
        lambda broker: JsonPublisherGateway(broker, JsonOptions(), authenticate=True),
        lambda user: f"log {user} x\n".encode(),
        lambda count: b'{"type":"PUB","topic":"t","msg":1}\n' * count,
    ),
    "native": Protocol(
        lambda broker: NativeGateway(
            broker, Desk(broker), NativeOptions(), authenticate=True
        ),
        lambda user: encode(Hello(user, "x", "")),
        lambda count: encode(Publish(1, "t", [b"x"] * count)),
    ),
    "mqtt": Protocol(
        lambda broker: MqttGateway(MqttHub(broker, MqttOptions()), authenticate=True),
        mqtt_login,
        mqtt_events,
    ),
}


@pytest.fixture
def users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Users:
    monkeypatch.setattr(password, "COST_N", 2)
    path = tmp_path / "users"
    for name in ("anna", "bert"):
        set_password(path, name, "x")
    set_quota(path, "anna", Quota(events_per_s=1))
    return Users.load(path)


def taken(one: House) -> int:
    """How many events the broker has got, or keeps until their PUBREL."""
    log = one.broker.log
    stored = log.topic("t").next_offset if log.has_topic("t") else 0
    return stored + len(one.broker.pending)


async def logged_in(one: House, protocol: Protocol, user: str) -> Client:
    client = await one.connect()
    await client.send(protocol.login(user))
    gateway = one.gateways[-1]
    await one.until(lambda: gateway.settled)
    return client


async def tick(one: House, seconds: float) -> None:
    one.clock.advance(seconds)
    one.engine.tick()
    one.listeners.check_idle(one.clock.now_s())


@pytest.mark.parametrize("name", PROTOCOLS)
def test_whoever_is_too_fast_is_not_read_until_the_debt_is_paid(
    name: str, users: Users, tmp_path: Path
) -> None:
    protocol = PROTOCOLS[name]

    async def scene() -> None:
        options = ServerOptions(idle_s=3.0)
        async with house(tmp_path / "data", options, users) as one:
            await one.listen(lambda: protocol.make(one.broker))
            anna = await logged_in(one, protocol, "anna")
            await anna.send(protocol.publish(10))
            await one.until(lambda: taken(one) == 10)
            assert one.broker.accounts.waits == {"events_per_s": 1}

            await anna.send(protocol.publish(1))
            bert = await logged_in(one, protocol, "bert")
            await bert.send(protocol.publish(10))  # behind hers, and no slower for it
            await one.until(lambda: taken(one) == 20)
            for _ in range(8):  # longer than silence is put up with
                await tick(one, 1.0)
                await asyncio.sleep(0)
            assert taken(one) == 20

            await tick(one, 1.1)
            await one.until(lambda: taken(one) == 21)
            await tick(one, 1.0)
            await anna.send(protocol.publish(1))
            await one.until(lambda: taken(one) == 22)

    run(scene())


def test_all_connections_of_a_user_share_the_rate(users: Users, tmp_path: Path) -> None:
    protocol = PROTOCOLS["line"]

    async def scene() -> None:
        async with house(tmp_path / "data", None, users) as one:
            await one.listen(lambda: protocol.make(one.broker))
            first = await logged_in(one, protocol, "anna")
            second = await logged_in(one, protocol, "anna")
            await first.send(line_events(2))
            await one.until(lambda: taken(one) == 2)
            await second.send(line_events(2))
            await one.until(lambda: taken(one) == 4)

            for client in (first, second):
                await client.send(line_events(1))
            await tick(one, 2.0)
            await tick(one, 1.1)
            await one.until(lambda: taken(one) == 5)
            await one.until(lambda: len(one.engine.owing) == 2)
            await tick(one, 1.0)
            await one.until(lambda: taken(one) == 6)

    run(scene())


def test_another_login_is_no_way_around_a_debt(users: Users, tmp_path: Path) -> None:
    protocol = PROTOCOLS["line"]

    async def scene() -> None:
        async with house(tmp_path / "data", None, users) as one:
            await one.listen(lambda: protocol.make(one.broker))
            first = await logged_in(one, protocol, "anna")
            await first.send(line_events(4))
            await one.until(lambda: taken(one) == 4)

            second = await logged_in(one, protocol, "anna")
            await second.send(line_events(1))
            await one.until(lambda: len(one.engine.owing) == 2)
            await tick(one, 2.9)
            bert = await logged_in(one, protocol, "bert")
            await bert.send(line_events(1))
            await one.until(lambda: taken(one) == 5)
            await tick(one, 0.2)
            await one.until(lambda: taken(one) == 6)

    run(scene())


def test_whoever_only_listens_is_not_held_up(users: Users, tmp_path: Path) -> None:
    protocol = PROTOCOLS["line"]

    async def scene() -> None:
        async with house(tmp_path / "data", None, users) as one:
            one.broker.create_topic("t")
            await one.listen(lambda: protocol.make(one.broker))
            reader = await logged_in(one, protocol, "anna")
            writer = await logged_in(one, protocol, "anna")
            await writer.send(line_events(10))
            await one.until(lambda: taken(one) == 10)

            await reader.send(b"sub t\n")

            lines = await reader.lines(3)
            assert lines[2] == b"successfully subscribed to topic t"

    run(scene())


def test_what_came_before_the_end_is_still_taken_in(
    users: Users, tmp_path: Path
) -> None:
    protocol = PROTOCOLS["line"]

    async def scene() -> None:
        async with house(tmp_path / "data", None, users) as one:
            await one.listen(lambda: protocol.make(one.broker))
            anna = await logged_in(one, protocol, "anna")
            await anna.send(line_events(3))
            await one.until(lambda: taken(one) == 3)
            await anna.send(line_events(1))
            anna.end()

            await tick(one, 2.1)
            await one.until(lambda: taken(one) == 4)
            await tick(one, 2.1)
            await one.until(lambda: not one.engine.connections)
            assert not one.engine.owing

    run(scene())


def test_whoever_leaves_while_it_waits_is_forgotten(
    users: Users, tmp_path: Path
) -> None:
    protocol = PROTOCOLS["line"]

    async def scene() -> None:
        async with house(tmp_path / "data", None, users) as one:
            await one.listen(lambda: protocol.make(one.broker))
            anna = await logged_in(one, protocol, "anna")
            await anna.send(line_events(3))
            await one.until(lambda: one.engine.owing)
            for connection in list(one.engine.connections.values()):
                connection.abort()
            await one.until(lambda: not one.engine.connections)

            assert not one.engine.owing
            account = one.broker.accounts.named("anna")
            assert account is not None and account.connections == 0
            await tick(one, 5.0)

    run(scene())
