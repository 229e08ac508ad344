from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.errors import Forged
from penstock.server.connection import LOGIN_READ_BYTES, Connection
from penstock.server.mqtt_socket import MqttSockets, SocketTransport
from penstock.server.options import ServerOptions
from tests.unit.server.scene import Echo, house, run

Message = dict[str, Any]


class Noting:
    """What a connection is told."""

    def __init__(self, heard: Callable[[Noting, bytes], None] | None = None) -> None:
        self.told: list[object] = []
        self.transport: Any = None
        self.revoked = False
        self._heard = heard

    def connection_made(self, transport: object) -> None:
        self.transport = transport
        self.told.append("made")

    def take_in(self, data: bytes) -> None:
        self.told.append(data)
        if self._heard is not None:
            self._heard(self, data)

    def pause_writing(self) -> None:
        self.told.append("paused")

    def resume_writing(self) -> None:
        self.told.append("resumed")

    def connection_lost(self, exc: object) -> None:
        self.told.append("lost")


class Peer:
    """A WebSocket as an application sees it."""

    def __init__(self, *messages: Message, blocks: bool = False) -> None:
        self.sent: list[Message] = []
        self._messages = [{"type": "websocket.connect"}, *messages]
        self._blocks = blocks

    async def receive(self) -> Message:
        if self._messages:
            return self._messages.pop(0)
        await asyncio.Event().wait()
        raise AssertionError("nothing more comes")

    async def send(self, message: Message) -> None:
        self.sent.append(message)
        if self._blocks and message["type"] == "websocket.send":
            await asyncio.Event().wait()


def scope(path: str = "/mqtt", *subprotocols: str) -> Message:
    return {
        "type": "websocket",
        "path": path,
        "subprotocols": list(subprotocols),
        "headers": [],
        "client": ("127.0.0.1", 1),
    }


def served(
    peer: Peer,
    connection: Noting,
    scope: Message,
    check_origin: Callable[[object], None] = lambda headers: None,
) -> list[Message]:
    others: list[Message] = []

    async def other(scope: Message, receive: object, send: object) -> None:
        others.append(scope)

    app = MqttSockets(
        cast("Any", other), check_origin, lambda: cast(Connection, connection)
    )
    served = app(scope, peer.receive, cast("Any", peer.send))
    asyncio.run(asyncio.wait_for(served, 10))
    return others


def data(payload: bytes) -> Message:
    return {"type": "websocket.receive", "bytes": payload}


GONE = {"type": "websocket.disconnect", "code": 1000}


def test_bytes_go_to_the_connection_and_what_it_writes_comes_back() -> None:
    def echo(connection: Noting, data: bytes) -> None:
        connection.transport.write(data.upper())
        if data == b"b":
            connection.transport.close()

    peer, connection = Peer(data(b"a"), data(b"b")), Noting(echo)

    served(peer, connection, scope("/mqtt", "other", "mqtt"))

    assert connection.told == ["made", b"a", b"b", "lost"]
    assert peer.sent[0] == {"type": "websocket.accept", "subprotocol": "mqtt"}
    assert b"".join(one.get("bytes", b"") for one in peer.sent) == b"AB"
    assert peer.sent[-1] == {"type": "websocket.close", "code": 1000}


def test_whose_login_counts_no_more_hears_that_it_is_refused() -> None:
    def revoke(connection: Noting, data: bytes) -> None:
        connection.revoked = True
        connection.transport.close()

    peer = Peer(data(b"a"))

    served(peer, Noting(revoke), scope("/mqtt", "mqtt"))

    assert peer.sent[-1] == {"type": "websocket.close", "code": 1008}


def test_a_peer_that_goes_is_lost() -> None:
    connection = Noting()

    served(Peer(GONE), connection, scope("/mqtt", "mqtt"))

    assert connection.told == ["made", "lost"]


@pytest.mark.parametrize("offered", [(), ("chat",)])
def test_who_does_not_speak_mqtt_is_refused(offered: tuple[str, ...]) -> None:
    peer, connection = Peer(), Noting()

    served(peer, connection, scope("/mqtt", *offered))

    assert peer.sent == [{"type": "websocket.close", "code": 1008}]
    assert connection.told == []


def test_a_page_of_somebody_else_is_refused() -> None:
    def check(headers: object) -> None:
        raise Forged("it comes from elsewhere")

    peer, connection = Peer(), Noting()

    served(peer, connection, scope("/mqtt", "mqtt"), check)

    assert peer.sent == [{"type": "websocket.close", "code": 1008}]


def test_text_is_not_mqtt() -> None:
    peer = Peer({"type": "websocket.receive", "text": "hello", "bytes": None})
    connection = Noting()

    served(peer, connection, scope("/mqtt", "mqtt"))

    assert peer.sent[-1] == {"type": "websocket.close", "code": 1003}


def test_other_sockets_are_for_the_application_behind() -> None:
    connection = Noting()

    others = served(Peer(), connection, scope("/v1/socket", "mqtt"))

    assert [one["path"] for one in others] == ["/v1/socket"]


def test_a_connection_that_has_written_too_much_is_told_to_wait() -> None:
    def much(connection: Noting, data: bytes) -> None:
        connection.transport.set_write_buffer_limits(high=10)
        connection.transport.write(b"x" * 11)
        connection.transport.close()

    connection = Noting(much)

    served(Peer(data(b"a")), connection, scope("/mqtt", "mqtt"))

    assert connection.told == ["made", b"a", "paused", "resumed", "lost"]


def test_a_connection_that_is_cut_off_ends_though_its_peer_does_not_read() -> None:
    def cut(connection: Noting, data: bytes) -> None:
        if data == b"a":
            connection.transport.write(b"x")
            asyncio.get_running_loop().call_later(0.01, connection.transport.abort)

    connection = Noting(cut)

    served(Peer(data(b"a"), blocks=True), connection, scope("/mqtt", "mqtt"))

    assert connection.told == ["made", b"a", "lost"]
    assert connection.transport.is_closing()


class Unread:
    """A WebSocket that is not there."""

    def __init__(self) -> None:
        self.let: list[bool] = []

    def hold(self) -> None: ...

    def go_on(self) -> None: ...

    def let_in(self) -> None:
        self.let.append(True)

    def cut_off(self) -> None: ...


@pytest.mark.parametrize("read_bytes", [1, LOGIN_READ_BYTES, 1 << 18])
def test_who_has_logged_in_may_send_more_however_much_is_read_at_once(
    tmp_path: Path, read_bytes: int
) -> None:
    async def scene() -> None:
        async with house(tmp_path, ServerOptions(read_bytes=read_bytes)) as one:
            gateway, socket = Echo(), Unread()
            gateway.settled = False
            connection = one.listeners.beside(gateway, "mqtt")
            connection.connection_made(SocketTransport(connection, None, socket))
            connection.take_in(b"who")
            assert not socket.let
            gateway.settled = True

            connection.take_in(b"it is me")

            assert socket.let
            connection.connection_lost(None)

    run(scene())
