"""Every way to log in to a server, over real sockets and from any loopback address.

    with door("mqtt5", server, "127.0.3.1") as one:
        assert one.log_in("anna", "secret") == IN

All of 127.0.0.0/8 is this machine, so a test has as many addresses as it likes.
"""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from penstock.wire.mqtt import (
    ClientParser,
    Connack,
    Connect,
    Disconnect,
    ServerPacket,
    render_connect,
)
from penstock.wire.native import FrameSplitter, Hello, decode_server, encode
from tests.serving import Serving

TIMEOUT_S = 60.0
IN, WRONG, WAIT = "in", "wrong", "wait"
WAIT_WORDS = re.compile(r"logins as \S+ from \S+ have failed within a minute: wait \d+")

_numbers = itertools.count(1)


class Door:
    """One connection."""

    port: str

    def __init__(self, server: Serving, source: str) -> None:
        self.server = server
        self.source = source
        self.sock = self.open(self.port)

    def open(self, port: str) -> socket.socket:
        where = ("127.0.0.1", self.server.ports[port])
        return socket.create_connection(where, TIMEOUT_S, (self.source, 0))

    def log_in(self, user: str, password: str) -> str:
        """IN, WRONG, or WAIT if the refusal says for how long."""
        raise NotImplementedError

    def last_word(self) -> str:
        """What is said when the server ends the connection, until it does."""
        raise NotImplementedError

    def close(self) -> None:
        self.sock.close()

    def rest(self) -> bytes:
        got = b""
        with suppress(ConnectionError):
            while data := self.sock.recv(1 << 16):
                got += data
        return got

    def line(self) -> str:
        got = b""
        while not got.endswith(b"\n"):
            data = self.sock.recv(1)
            assert data, got
            got += data
        return got.decode().strip()


class Line(Door):
    port = "line"

    def log_in(self, user: str, password: str) -> str:
        self.line()
        self.sock.sendall(f"as {user} {password}\n".encode())
        said = self.line()
        if said == f"subscriber {user}":
            return IN
        return WAIT if WAIT_WORDS.search(said) else WRONG

    def last_word(self) -> str:
        return self.rest().decode()


class Json(Door):
    def log_in(self, user: str, password: str) -> str:
        self.line()
        self.sock.sendall(f"log {user} {password}\n".encode())
        said = self.line()
        if said == "Succesfully logged in!":
            return IN
        assert WAIT_WORDS.search(said) or said == "Please login!", said
        return WAIT if WAIT_WORDS.search(said) else WRONG

    def last_word(self) -> str:
        return self.rest().decode()


class Consumer(Json):
    port = "consumer"


class Publisher(Json):
    port = "publisher"


class Native(Door):
    port = "native"

    def log_in(self, user: str, password: str) -> str:
        self._splitter = FrameSplitter(1 << 20)
        self.sock.sendall(encode(Hello(user, password, "")))
        said = self._next()
        if type(said).__name__ == "Welcome":
            return IN
        if said.error == "TooManyAttempts":
            assert WAIT_WORDS.search(said.text), said
            return WAIT
        assert said.error == "LoginRefused", said
        return WRONG

    def last_word(self) -> str:
        said = self._next()
        assert self.rest() == b""
        return f"{said.error}: {said.text}"

    def _next(self) -> Any:
        while True:
            data = self.sock.recv(1 << 16)
            assert data
            for body in self._splitter.feed(data):
                return decode_server(body)


class Mqtt(Door):
    port = "mqtt"
    version = 5

    def log_in(self, user: str, password: str) -> str:
        self._parser = ClientParser(1 << 20, self.version)
        packet = Connect(
            version=self.version,
            client_id=f"client{next(_numbers)}",
            clean_start=True,
            keep_alive=0,
            user=user,
            password=password.encode(),
        )
        self.send(render_connect(packet))
        said = self._next()
        assert isinstance(said, Connack), said
        return self._read(said)

    def _read(self, said: Connack) -> str:
        if said.reason == 0x97:
            assert WAIT_WORDS.search(str(said.properties)), said
        return {0: IN, 0x86: WRONG, 0x97: WAIT}[said.reason]

    def last_word(self) -> str:
        said = self._next()
        assert isinstance(said, Disconnect), said
        assert self.rest() == b""
        return f"{said.reason:#x} {said.properties}"

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def receive(self) -> bytes:
        return self.sock.recv(1 << 16)

    def _next(self) -> ServerPacket:
        while True:
            data = self.receive()
            assert data
            for packet in self._parser.feed(data):
                return packet


class OldMqtt(Mqtt):
    version = 4

    def _read(self, said: Connack) -> str:
        # As the parser has the return codes 0, 4 and 3.
        return {0: IN, 0x86: WRONG, 0x88: WAIT}[said.reason]

    def last_word(self) -> str:
        assert self.rest() == b""
        return ""


class WebSocketMqtt(Mqtt):
    port = "http"

    def __init__(self, server: Serving, source: str) -> None:
        super().__init__(server, source)
        self._socket = connect(
            f"ws://127.0.0.1:{server.ports['http']}/mqtt",
            sock=self.sock,
            subprotocols=[Subprotocol("mqtt")],
            legacy=True,
        )

    def send(self, data: bytes) -> None:
        self._socket.send(data)

    def receive(self) -> bytes:
        data = self._socket.recv(TIMEOUT_S)
        assert isinstance(data, bytes)
        return data

    def rest(self) -> bytes:
        got = b""
        with suppress(ConnectionClosed):
            while True:
                got += self.receive()
        return got

    def close(self) -> None:
        self._socket.close()


class Http(Door):
    port = "http"

    def ask(
        self, method: str, path: str, body: object, headers: dict[str, str]
    ) -> tuple[int, http.client.HTTPResponse]:
        asking = http.client.HTTPConnection("127.0.0.1")
        asking.sock = self.sock
        data = None if body is None else json.dumps(body)
        asking.request(
            method, path, data, {"Content-Type": "application/json", **headers}
        )
        answer = asking.getresponse()
        return answer.status, answer

    def read(self, status: int, answer: http.client.HTTPResponse) -> str:
        if status == 429:
            assert 0 < int(answer.headers["retry-after"]) <= 61
            assert WAIT_WORDS.search(answer.read().decode())
            return WAIT
        return {200: IN, 401: WRONG}[status]


class Basic(Http):
    def log_in(self, user: str, password: str) -> str:
        said = base64.b64encode(f"{user}:{password}".encode()).decode()
        return self.read(
            *self.ask("GET", "/v1/session", None, {"Authorization": f"Basic {said}"})
        )


class Session(Http):
    def log_in(self, user: str, password: str) -> str:
        said = {"user": user, "password": password}
        return self.read(*self.ask("POST", "/v1/session", said, {}))


DOORS: dict[str, type[Door]] = {
    "line": Line,
    "consumer": Consumer,
    "publisher": Publisher,
    "native": Native,
    "mqtt 5": Mqtt,
    "mqtt 3.1.1": OldMqtt,
    "mqtt websocket": WebSocketMqtt,
    "basic": Basic,
    "session": Session,
}
# Those whose connection is the login.
STANDING = [name for name in DOORS if name not in ("basic", "session")]


@contextmanager
def door(name: str, server: Serving, source: str) -> Iterator[Door]:
    one = DOORS[name](server, source)
    try:
        yield one
    finally:
        one.close()


def log_in(name: str, server: Serving, source: str, user: str, password: str) -> str:
    """One login, over a connection of its own."""
    with door(name, server, source) as one:
        return one.log_in(user, password)
