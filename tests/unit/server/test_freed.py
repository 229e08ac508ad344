"""What a connection held is free when it is gone, without anybody looking for it."""

from __future__ import annotations

import asyncio
import gc
import socket
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from penstock.gateway.line import LineGateway
from penstock.gateway.mqtt import MqttGateway, MqttHub
from penstock.gateway.options import LineOptions, MqttOptions
from penstock.http.options import HttpOptions
from penstock.server.accepting import no_tls
from penstock.server.connection import Connection
from penstock.server.http import HttpServer, _Http
from penstock.server.listeners import Port, bind
from penstock.server.mqtt_socket import PATH, MqttSockets
from penstock.server.options import TlsOptions
from penstock.server.tls import context_of
from penstock.server.websocket import WebSocket
from penstock.wire.mqtt import Connect, render_connect
from tests.interop.certificates import Certificates
from tests.unit.server.scene import House, house, run, turns

CONNECT = Connect(version=4, client_id="a", clean_start=True, keep_alive=60)


@pytest.fixture(autouse=True)
def nobody_collects() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Made:
    """Everything that was made of some classes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *classes: type) -> None:
        self._refs: list[weakref.ref[Any]] = []
        for one in classes:
            self._note(monkeypatch, one)

    def _note(self, monkeypatch: pytest.MonkeyPatch, one: type) -> None:
        original = one.__init__  # type: ignore[misc]  # of that very class

        def noted(made: Any, *args: Any, **kwargs: Any) -> None:
            self._refs.append(weakref.ref(made))
            original(made, *args, **kwargs)

        monkeypatch.setattr(one, "__init__", noted)

    async def gone(self, count: int) -> None:
        """Return when so many were made and none is left."""
        for _ in range(1000):
            left = [ref() for ref in self._refs if ref() is not None]
            if len(self._refs) >= count and not left:
                return
            del left
            await asyncio.sleep(0.002)
        left = [ref() for ref in self._refs if ref() is not None]
        shown = [(one, gc.get_referrers(one)) for one in left]
        raise AssertionError(f"{len(self._refs)} were made, left: {shown}")


@pytest.mark.slow
def test_a_connection_and_its_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Made(monkeypatch, Connection, LineGateway)

    async def scene() -> None:
        async with house(tmp_path) as one:
            one.broker.create_topic("t")
            sock = bind("127.0.0.1", 0, "line")

            def make() -> LineGateway:
                return LineGateway(one.broker, LineOptions())

            one.listeners.listen(Port(name="line", sock=sock, make_gateway=make))
            client = await one.client(sock.getsockname())
            await client.send(b"sub t\nas\nx")
            await client.lines(3)
            client.close()
            await made.gone(2)

    run(scene())


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 9000,
        b"POST / HTTP/1.1\r\nContent-Length: 99999\r\n\r\n" + b"x" * 9000,
        b"nonsense\r\n\r\n",
    ],
)
def test_a_connection_of_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    made = Made(monkeypatch, _Http)

    async def scene() -> None:
        async with (
            house(tmp_path) as one,
            http(one, PlainTextResponse("hello")) as port,
        ):
            client = await one.client(("127.0.0.1", port))
            await client.send(data)
            await turns(20)
            client.close()
            await made.gone(1)

    run(scene())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["leaves", "is cut off", "sends too much"])
def test_a_websocket_that_speaks_mqtt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    made = Made(monkeypatch, _Http, WebSocket, Connection, MqttGateway)

    async def scene() -> None:
        async with house(tmp_path) as one:
            hub = MqttHub(one.broker, MqttOptions())

            async def other(scope: Scope, receive: Receive, send: Send) -> None:
                raise AssertionError("not for us")

            app = MqttSockets(
                other,
                lambda headers: None,
                lambda: one.listeners.beside(MqttGateway(hub), "mqtt websocket"),
            )
            async with http(one, app) as port:
                await speak(port, how)
                await made.gone(4)

    run(scene())


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nX: " + b"x" * 9000,
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
def test_a_connection_of_http_over_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    certificates = Certificates(tmp_path)
    cert, key = map(str, certificates.server)
    tls = context_of(TlsOptions(cert_file=cert, key_file=key))
    made = Made(monkeypatch, _Http)

    def attack(port: int) -> None:
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            certificates.context().wrap_socket(
                plain, server_hostname="127.0.0.1"
            ) as sock,
        ):
            sock.sendall(data)

    async def scene() -> None:
        async with (
            house(tmp_path / "data") as one,
            http(one, PlainTextResponse("hello"), lambda: tls) as port,
        ):
            await asyncio.to_thread(attack, port)
            await made.gone(1)

    run(scene())


async def speak(port: int, how: str) -> None:
    url = f"ws://127.0.0.1:{port}/mqtt"
    async with connect(url, subprotocols=["mqtt"]) as peer:  # type: ignore[list-item]
        assert not peer.protocol.extensions, "nothing is compressed"
        if how == "sends too much":
            await peer.send(bytes(20_000))
            with pytest.raises(ConnectionClosed):
                await peer.recv()
            return
        await peer.send(render_connect(CONNECT))
        assert await peer.recv() == b"\x20\x02\x00\x00"
        if how == "is cut off":
            peer.transport.abort()


class http:
    """An application at a port."""

    def __init__(self, one: House, app: Any, tls: Any = no_tls) -> None:
        self._tls = tls
        self._server = HttpServer(
            app, HttpOptions(), one.listeners, lambda: None, login_inside=(PATH,)
        )
        self._sock = bind("127.0.0.1", 0, "http")

    async def __aenter__(self) -> int:
        await self._server.start(self._sock, self._tls)
        port: int = self._sock.getsockname()[1]
        return port

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        await self._server.abort()
