"""A plain socket to a server, for tests: send bytes, read lines, mind the time."""

from __future__ import annotations

import socket
import ssl
from contextlib import suppress
from types import TracebackType
from typing import Self

# Nothing in the tests takes so long.
PATIENCE_S = 60.0


class Wire:
    """Use it as a context manager: it is closed at the end."""

    def __init__(
        self,
        port: int,
        *,
        receive_buffer: int | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.sock = socket.socket()
        self.sock.settimeout(PATIENCE_S)
        if receive_buffer is not None:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self._got = b""
        try:
            self.sock.connect(("127.0.0.1", port))
            if tls is not None:
                self.sock = tls.wrap_socket(self.sock, server_hostname="127.0.0.1")
        except BaseException:
            self.sock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.sock.close()

    def say(self, *lines: str) -> None:
        """Send lines, all at once."""
        self.sock.sendall("".join(line + "\n" for line in lines).encode())

    def line(self) -> str:
        """The next line; empty if the server has closed."""
        while b"\n" not in self._got:
            data = self.sock.recv(1 << 16)
            if not data:
                return ""
            self._got += data
        line, _, self._got = self._got.partition(b"\n")
        return line.decode().rstrip("\r")

    def lines(self, count: int) -> list[str]:
        return [self.line() for _ in range(count)]

    def ask(self, line: str) -> str:
        """Send a line; the next one that comes."""
        self.say(line)
        return self.line()

    def rest(self) -> bytes:
        """All there is until the server closes, also if it does so rudely."""
        got = [self._got]
        with suppress(ConnectionError):
            while data := self.sock.recv(1 << 16):
                got.append(data)
        return b"".join(got)
