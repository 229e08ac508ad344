"""Clients of a broker in one loop, over raw sockets, that outlive their connections.

A client is a state machine: what it hears goes in, what it says comes out, and what it
has to remember stays when the connection is gone. The loop connects clients, carries
bytes, and connects them again when a connection ends. So whatever a client has heard
and said has one order, and a test can stop the world between two answers.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

READ_BYTES = 1 << 16
TIMEOUT_S = 60.0
# The whole of a run; more than a busy machine needs.
RUN_S = 120.0
_RESET = struct.pack("ii", 1, 0)  # linger for 0 s: what is on its way is lost


class Client:
    """One client; ``port`` says which gateway it speaks to."""

    port = "line"

    def __init__(self, name: str) -> None:
        self.name = name
        self.facts = 0
        """Promises it was given: confirmations and settlements."""
        self.out = bytearray()
        """What is to be sent."""
        self.drops_out = False
        """Whether it wants its connection to be torn down now."""

    def opened(self) -> None:
        """A new connection."""

    def received(self, data: bytes) -> None:
        raise NotImplementedError

    def work(self) -> None:
        """Say what there is to say."""

    def lost(self) -> None:
        """The connection is gone, and with it what was unanswered."""

    def state(self) -> str:
        """For the message of a test that hangs."""
        return f"{self.name}: {self.facts} facts, {len(self.out)} bytes to send"


class LineClient(Client):
    """A client of a protocol of lines."""

    _rest = b""

    def opened(self) -> None:
        self._rest = b""

    def received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\r\n")
        for line in lines:
            self.heard(line.decode())

    def heard(self, line: str) -> None:
        raise NotImplementedError

    def say(self, line: str) -> None:
        self.out += line.encode() + b"\n"


class Load:
    """All clients of a test."""

    def __init__(self, clients: Sequence[Client], ports: Mapping[str, int]) -> None:
        self.clients = clients
        self.ports = ports
        self._selector = selectors.DefaultSelector()
        self._sockets: dict[Client, socket.socket] = {}

    @property
    def facts(self) -> int:
        return sum(client.facts for client in self.clients)

    def run(self, done: Callable[[], bool]) -> None:
        """Let the clients work; ``done`` is asked after every read."""
        deadline_s = time.monotonic() + RUN_S
        while not done():
            for client in self.clients:
                self._serve(client)
            ready = self._selector.select(TIMEOUT_S)
            assert ready and time.monotonic() < deadline_s, self._states()
            for key, events in ready:
                client = key.data
                if events & selectors.EVENT_READ and not self._read(client):
                    self._end(client)
                elif client.drops_out:
                    self.tear(client)
                if done():
                    break

    def tear(self, client: Client) -> None:
        """End a connection as if the client had been killed."""
        if (sock := self._sockets.get(client)) is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self._end(client)

    def hear_out(self) -> None:
        """The server was killed: hear what it said before, then count it as gone."""
        for client, sock in list(self._sockets.items()):
            sock.setblocking(True)
            while self._read(client):
                pass
            self._end(client)

    def close(self) -> None:
        for client in list(self._sockets):
            self._end(client)
        self._selector.close()

    def _serve(self, client: Client) -> None:
        sock = self._sockets.get(client) or self._connect(client)
        client.work()
        if client.out:
            try:
                del client.out[: sock.send(client.out)]
            except BlockingIOError:
                pass
            except OSError:
                self._end(client)
                return
        events = selectors.EVENT_READ
        if client.out:
            events |= selectors.EVENT_WRITE
        self._selector.modify(sock, events, client)

    def _connect(self, client: Client) -> socket.socket:
        address = ("127.0.0.1", self.ports[client.port])
        sock = socket.create_connection(address, TIMEOUT_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        self._sockets[client] = sock
        self._selector.register(sock, selectors.EVENT_READ, client)
        client.out.clear()
        client.opened()
        return sock

    def _read(self, client: Client) -> bool:
        """Read once; whether the connection still lives."""
        try:
            data = self._sockets[client].recv(READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if data:
            client.received(data)
        return bool(data)

    def _end(self, client: Client) -> None:
        sock = self._sockets.pop(client)
        self._selector.unregister(sock)
        sock.close()
        client.drops_out = False
        client.lost()

    def _states(self) -> str:
        return "nothing moves:\n" + "\n".join(one.state() for one in self.clients)


def ask(port: int, lines: Iterable[str], answers: int) -> list[str]:
    """Say lines to the line gateway on a connection of its own; so many answers."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as sock:
        sock.sendall("".join(f"{line}\n" for line in lines).encode())
        with sock.makefile("rb") as heard:
            heard.readline()  # the greeting
            return [heard.readline().decode().rstrip("\r\n") for _ in range(answers)]
