"""All clients of a run in one loop, over raw sockets.

The loop connects clients, carries bytes, and connects them again when a connection
ends. So whatever clients have heard and said has one order, and an accident can happen
between two answers.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Callable, Iterable, Mapping

from penstock.torture.client import LoadClient
from penstock.torture.promise import PromiseBroken

READ_BYTES = 1 << 16
TIMEOUT_S = 60.0
# Without any client being told anything: more than a slow disk needs for that.
PATIENCE_S = 60.0
LOOK_S = 5.0
_RESET = struct.pack("ii", 1, 0)  # linger for 0 s: what is on its way is lost


class Load:
    """The clients, and their connections."""

    def __init__(
        self,
        clients: Iterable[LoadClient],
        ports: Mapping[str, int],
        still_working: Callable[[], None] = lambda: None,
    ) -> None:
        self.clients = list(clients)
        self._still_working = still_working
        self.ports = ports
        self._selector = selectors.DefaultSelector()
        self._sockets: dict[LoadClient, socket.socket] = {}

    @property
    def facts(self) -> int:
        return sum(client.facts for client in self.clients)

    def run(self, done: Callable[[], bool]) -> None:
        """Let the clients work; ``done`` is asked after every read."""
        facts, silent_s = self.facts, 0.0
        while not self.run_for(LOOK_S, done):
            self._still_working()
            silent_s = silent_s + LOOK_S if self.facts == facts else 0.0
            facts = self.facts
            if silent_s >= PATIENCE_S:
                raise PromiseBroken(self._states())

    def run_for(self, seconds: float, done: Callable[[], bool]) -> bool:
        """Let the clients work for so long at most; whether it is done."""
        until_s = time.monotonic() + seconds
        while not done():
            for client in self.clients:
                self._serve(client)
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return False
            for key, events in self._selector.select(left_s):
                client = key.data
                if events & selectors.EVENT_READ and not self._read(client):
                    self._end(client)
                elif client.drops_out:
                    self.tear(client)
                if done():
                    break
        return True

    def tear(self, client: LoadClient) -> None:
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

    def leave(self, client: LoadClient) -> None:
        """It has nothing more to say."""
        self.clients.remove(client)
        self._end(client)

    def close(self) -> None:
        for client in list(self._sockets):
            self._end(client)
        self._selector.close()

    def _serve(self, client: LoadClient) -> None:
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

    def _connect(self, client: LoadClient) -> socket.socket:
        address = ("127.0.0.1", self.ports[client.port])
        sock = socket.create_connection(address, TIMEOUT_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        self._sockets[client] = sock
        self._selector.register(sock, selectors.EVENT_READ, client)
        client.out.clear()
        client.opened()
        return sock

    def _read(self, client: LoadClient) -> bool:
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

    def _end(self, client: LoadClient) -> None:
        sock = self._sockets.pop(client)
        self._selector.unregister(sock)
        sock.close()
        client.drops_out = False
        client.lost()

    def _states(self) -> str:
        return "nothing moves:\n" + "\n".join(one.state() for one in self.clients)
