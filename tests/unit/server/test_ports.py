from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from penstock.broker.broker import Broker
from penstock.clock import ManualClock
from penstock.desk.desk import Desk
from penstock.gateway.gateway import Gateway
from penstock.gateway.json_consumer import JsonConsumerGateway
from penstock.gateway.json_publisher import JsonPublisherGateway
from penstock.gateway.line import LineGateway
from penstock.gateway.maze import MazeClient, MazeSource, MazeState
from penstock.gateway.native import NativeGateway
from penstock.log import Columns, Log
from penstock.server import ports as module
from penstock.server.connection import Connection
from penstock.server.engine import Engine
from penstock.server.listeners import Listeners, Port
from penstock.server.options import ListenOptions, ServerOptions, TlsOptions
from penstock.server.ports import LOCAL, MazeSourceConnection, Ports
from penstock.server.settings import Settings
from penstock.server.tls import Certificates as Loaded
from tests.interop.certificates import Certificates

KINDS: dict[str, type[Gateway]] = {
    "line": LineGateway,
    "consumer": JsonConsumerGateway,
    "publisher": JsonPublisherGateway,
    "maze_event": MazeSource,
    "maze_client": MazeClient,
    "native": NativeGateway,
    LOCAL: NativeGateway,
}


@pytest.fixture
def state() -> MazeState:
    return MazeState()


@pytest.fixture
def broker(tmp_path: Path, state: MazeState) -> Iterator[Broker]:
    open_log = partial(Log.open, tmp_path, clock=ManualClock())
    with Broker(open_log, kept=[state]) as broker:
        yield broker


@pytest.fixture
def sockets() -> Iterator[dict[str, socket.socket]]:
    found = {name: socket.socket() for name in KINDS}
    yield found
    for sock in found.values():
        sock.close()


def test_each_port_speaks_its_protocol(
    broker: Broker, state: MazeState, sockets: dict[str, socket.socket]
) -> None:
    ports = Ports(Settings(), broker, Desk(broker), state, sockets).ports(
        authenticate=False
    )

    assert {port.name: type(port.make_gateway()) for port in ports} == KINDS
    assert all(port.sock is sockets[port.name] for port in ports)
    odd = {port.name: port.connection for port in ports}
    assert odd.pop("maze_event") is MazeSourceConnection
    assert set(odd.values()) == {Connection}


def test_only_ports_that_have_a_socket_are_there(
    broker: Broker, state: MazeState, sockets: dict[str, socket.socket]
) -> None:
    some = {"line": sockets["line"]}

    (port,) = Ports(Settings(), broker, Desk(broker), state, some).ports(
        authenticate=False
    )

    assert port.name == "line"


def test_with_users_everybody_logs_in_except_at_the_local_socket(
    broker: Broker, state: MazeState, sockets: dict[str, socket.socket]
) -> None:
    for name in ("maze_event", "maze_client"):
        sockets.pop(name).close()

    open_, asked = (
        {
            port.name: greeting(port.make_gateway())
            for port in Ports(Settings(), broker, Desk(broker), state, sockets).ports(
                authenticate=authenticate
            )
        }
        for authenticate in (False, True)
    )

    assert open_["publisher"] == b""
    assert asked["publisher"] == b"Please login!\r\n"
    assert open_["consumer"] == asked["consumer"] == b"Please login!\r\n"
    line = Ports(Settings(), broker, Desk(broker), state, sockets).ports(
        authenticate=True
    )[0]
    assert not line.make_gateway().settled


@pytest.mark.parametrize("authenticate", [False, True])
def test_each_maker_asks_for_a_login_or_its_port_is_known_to_have_none(
    broker: Broker,
    state: MazeState,
    monkeypatch: pytest.MonkeyPatch,
    *,
    authenticate: bool,
) -> None:
    made: list[object] = []

    def recorded(*_: object, **given: object) -> Gateway:
        made.append(given.get("authenticate"))
        return Gateway()

    for name, kind in vars(module).items():
        if isinstance(kind, type) and issubclass(kind, Gateway):
            monkeypatch.setattr(module, name, recorded)
    makers = Ports(Settings(), broker, Desk(broker), state, {})._makers(
        authenticate=authenticate
    )
    for maker in makers.values():
        maker()

    told = dict(zip(makers, made, strict=True))
    assert told.pop(LOCAL) is None
    asking = {name for name, one in told.items() if one is authenticate}
    assert asking == told.keys() - set(module._WITHOUT_LOGIN)
    assert asking | set(module._WITHOUT_LOGIN) == told.keys()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plain", "open_to_others"),
    [(None, False), ("line, http", False), ("mqtt", True), ("line,mqtt", True)],
)
def test_with_a_certificate_plain_mqtt_answers_this_machine_only(
    broker: Broker,
    state: MazeState,
    tmp_path: Path,
    plain: str | None,
    *,
    open_to_others: bool,
) -> None:
    made = Certificates(tmp_path)
    tls = TlsOptions(
        cert_file=str(made.server[0]), key_file=str(made.server[1]), plain=plain
    )
    names = ("line", "native", "mqtt", "mqtts", LOCAL)
    with ExitStack() as stack:
        sockets = {name: stack.enter_context(socket.socket()) for name in names}
        ports = Ports(
            *(Settings(tls=tls), broker, Desk(broker), state, sockets), Loaded(tls)
        )
        found = {port.name: port for port in ports.ports(authenticate=False)}

    spoken = {name for name, port in found.items() if port.tls() is not None}
    assert spoken == {"native", "mqtts"} | (set() if "line" in str(plain) else {"line"})
    others = entering(broker, found["mqtt"], "192.0.2.7")
    assert (b"without TLS" not in (others or b"")) is open_to_others
    assert entering(broker, found["mqtt"], "127.0.0.1") is None
    assert entering(broker, found["line"], "192.0.2.7") is None


def entering(broker: Broker, port: Port, address: str) -> bytes | None:
    """What a peer is told that comes from an address and is not let in."""
    loop = asyncio.new_event_loop()
    try:
        door = Listeners(Engine(broker, ManualClock(), loop), ServerOptions(), None)
        found = door.way_in(port).admit(address)
        door.end()
        return found
    finally:
        loop.close()


def test_users_of_one_server_know_of_each_other(
    broker: Broker, state: MazeState, sockets: dict[str, socket.socket]
) -> None:
    some = {"consumer": sockets["consumer"]}
    (port,) = Ports(Settings(), broker, Desk(broker), state, some).ports(
        authenticate=False
    )
    first, second = port.make_gateway(), port.make_gateway()

    first.receive(b"log anna\n", 0.0)
    second.receive(b"log anna\n", 0.0)

    assert not first.closing
    assert second.closing


def test_the_maze_has_its_topic_with_its_durability(
    broker: Broker, state: MazeState
) -> None:
    Ports(Settings(), broker, Desk(broker), state, {})

    assert broker.log.topic("maze").options.durability == "os"


def test_without_a_source_there_is_no_topic(broker: Broker, state: MazeState) -> None:
    listen = ListenOptions(maze_event_port=None, maze_client_port=None)

    Ports(Settings(listen=listen), broker, Desk(broker), state, {})

    assert broker.log.topics() == []


def test_the_maze_catches_up_with_its_topic(broker: Broker, state: MazeState) -> None:
    broker.create_topic("maze")
    for lines in ([b"1|F|1|2", b"2|F|3|2"], [b"3|U|1|2"]):
        broker.publish("maze", Columns(lines, 0))
        broker.log.commit()

    Ports(Settings(), broker, Desk(broker), state, {}).tick(0.0)

    assert state.applied == 3
    assert set(state.followers.of(2)) == {3}


@pytest.mark.parametrize("again", [0, 3])
def test_the_maze_survives_the_deletion_of_its_topic(
    tmp_path: Path, again: int
) -> None:
    state = MazeState()
    open_log = partial(Log.open, tmp_path, clock=ManualClock())
    with Broker(open_log, kept=[state]) as broker:
        Ports(Settings(), broker, Desk(broker), state, {}).tick(0.0)
        lines = [b"%d|F|%d|9" % (n, n) for n in range(1, 11)]
        broker.publish("maze", Columns(lines, 0))
        broker.log.commit()
        state.published(10)
        broker.log.checkpoint()
        broker.delete_topic("maze")
        broker.log.commit()
        for number in range(again):
            broker.publish("maze", Columns([b"%d|F|%d|7" % (number + 1, number)], 0))

    for _ in range(2):
        reopened = MazeState()
        with Broker(open_log, kept=[reopened]) as broker:
            Ports(Settings(), broker, Desk(broker), reopened, {}).tick(0.0)

            assert reopened.applied == again
            assert len(set(reopened.followers.of(7))) == again


def greeting(gateway: Gateway) -> bytes:
    gateway.connected(0.0)
    return b"".join(gateway.output(0.0, 1000))
