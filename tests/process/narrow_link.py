"""A port in front of a server that lets some bytes through, and then no more.

    with NarrowLink(("127.0.0.1", port)) as link:
        link.allow(10_000)
        ...  # a program that speaks to link.address
        link.wait_until_used_up(60.0)

So a program can be killed in the middle of its work, however fast it is: whatever goes
beyond what is allowed stays in front of the link. Answers always pass.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable

PIECE_BYTES = 4096


class NarrowLink:
    """Any number of connections share what is allowed."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self._change = threading.Condition()
        self._allowed = 0
        self._waiting = 0
        self._cuts = 0
        self._threads: list[threading.Thread] = []

    @property
    def address(self) -> str:
        return "{}:{}".format(*self._listener.getsockname())

    def __enter__(self) -> NarrowLink:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join()

    def allow(self, count: int) -> None:
        """Let so many bytes through from now on."""
        with self._change:
            self._allowed = count
            self._change.notify_all()

    def wait_until_used_up(self, patience_s: float) -> None:
        """Until there are bytes that may not pass any more."""
        with self._change:
            assert self._change.wait_for(lambda: self._waiting, patience_s)

    def cut(self) -> None:
        """End all connections, with what has not passed."""
        with self._change:
            self._cuts += 1
            connections, self._open = self._open, set()
            self._change.notify_all()
            for sock in connections:
                _end(sock)

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                with self._change:
                    self._open |= {client, server}
                    cuts = self._cuts
                self._start(self._narrow, client, server, cuts)
                self._start(_pump, server, client)

    def _narrow(self, source: socket.socket, target: socket.socket, cuts: int) -> None:
        """Pass on what is allowed, until the connection is cut."""
        with contextlib.suppress(OSError):
            while data := source.recv(PIECE_BYTES):
                with self._change:
                    self._wait_for_room(len(data), cuts)
                    if self._cuts != cuts:
                        break
                    self._allowed -= len(data)
                target.sendall(data)
        _end(target)
        source.close()

    def _wait_for_room(self, count: int, cuts: int) -> None:
        if self._allowed < count:
            self._waiting += 1
            self._change.notify_all()
            self._change.wait_for(lambda: cuts < self._cuts or self._allowed >= count)
            self._waiting -= 1


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(PIECE_BYTES):
            target.sendall(data)
    _end(target)
    source.close()


def _end(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
