"""A server in the test's own process: a real broker and socket, and one thread.

For tests of clients and commands that want to be quick. It speaks the native protocol
at the socket of its data directory, and commits whenever somebody waits for it.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from penstock.access.grants import ADMINISTRATOR
from penstock.broker.broker import Broker
from penstock.client.address import SOCKET_NAME
from penstock.desk.desk import Desk
from penstock.gateway.native import NativeGateway
from penstock.gateway.options import NativeOptions
from penstock.log import Log

ROOM = 1 << 20


class LocalServer:
    """``passwords``: everybody has to log in. ``mute``: takes in, answers nothing."""

    def __init__(self, data: Path, passwords: dict[str, str] | None = None) -> None:
        self.data = data
        self.mute = False
        self.greeting = b""
        """Said to everybody, who is then turned away."""
        self._passwords = passwords
        self._broker = Broker(partial(Log.open, data))
        self._desk = Desk(self._broker)
        self._gateways: dict[NativeGateway, socket.socket] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(data / SOCKET_NAME))
        self._listener.listen()
        self._waker, self._wake = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._waker, selectors.EVENT_READ)
        self.between = threading.Lock()
        """Held through each turn: a test that has it may use the broker itself."""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """End every connection and close the broker."""
        if self._thread.is_alive():
            self._wake.send(b"!")
            self._thread.join()

    def _run(self) -> None:
        while True:
            ready = self._selector.select()
            with self.between:
                for key, _ in ready:
                    if key.fileobj is self._waker:
                        self._close()
                        return
                    if key.fileobj is self._listener:
                        self._accept()
                    else:
                        self._read(key.data)
                self._pump()

    def _accept(self) -> None:
        sock, _ = self._listener.accept()
        if self.greeting:
            sock.sendall(self.greeting)
            sock.recv(ROOM)  # a peer that writes to nobody hears nothing any more
            sock.close()
            return
        gateway = NativeGateway(
            self._broker,
            self._desk,
            NativeOptions(),
            authenticate=self._passwords is not None,
            grants=ADMINISTRATOR,
        )
        self._gateways[gateway] = sock
        self._selector.register(sock, selectors.EVENT_READ, gateway)

    def _read(self, gateway: NativeGateway) -> None:
        try:
            data = self._gateways[gateway].recv(ROOM)
        except ConnectionResetError:  # it has gone with answers unread
            data = b""
        if not data:
            self._drop(gateway)
            return
        gateway.receive(data, time.time())
        if (login := gateway.login) is not None:
            known = (self._passwords or {}).get(login.user)
            gateway.logged_in(known == login.password, time.time())
        while gateway.busy:
            gateway.go_on(time.time())

    def _pump(self) -> None:
        sent = not self.mute
        while sent:
            if self._broker.urgent:
                self._broker.log.commit()
            sent = any([self._send(gateway) for gateway in list(self._gateways)])

    def _send(self, gateway: NativeGateway) -> bool:
        data = b"".join(gateway.output(time.time(), ROOM))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._gateways[gateway].sendall(data)
        if gateway.closing:
            self._drop(gateway)
        return bool(data)

    def _drop(self, gateway: NativeGateway) -> None:
        sock = self._gateways.pop(gateway)
        self._selector.unregister(sock)
        sock.close()
        gateway.disconnected(time.time())

    def _close(self) -> None:
        for gateway in list(self._gateways):
            self._drop(gateway)
        for sock in (self._listener, self._waker, self._wake):
            sock.close()
        self._selector.close()
        self._broker.log.close()


@contextlib.contextmanager
def local_server(
    data: Path, passwords: dict[str, str] | None = None
) -> Iterator[LocalServer]:
    data.mkdir(exist_ok=True)
    server = LocalServer(data, passwords)
    try:
        yield server
    finally:
        server.stop()
