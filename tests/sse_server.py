"""A server of server-sent events on loopback that answers as it is told.

    with sse_server(answer(b"data: a\\n\\n"), NO_CONTENT) as server:
        ...  # the first request gets the first answer, and so on; the last one repeats
        server.requests[0]["last-event-id"]

Each answer is all the bytes that a connection gets; then it is closed, unless the
answer is ``Hanging``.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

NO_CONTENT = b"HTTP/1.1 204 No Content\r\n\r\n"


class Hanging(bytes):
    """Bytes behind which nothing comes, and no end."""


def answer(
    body: bytes = b"",
    *,
    status: str = "200 OK",
    content_type: str = "text/event-stream",
) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


@dataclass
class SseServer:
    url: str
    requests: list[dict[str, str]] = field(default_factory=list)
    """The headers of each request, their names in small letters."""


@contextlib.contextmanager
def sse_server(*answers: bytes) -> Iterator[SseServer]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = SseServer(f"http://127.0.0.1:{listener.getsockname()[1]}/events")
        hanging: list[socket.socket] = []
        thread = threading.Thread(
            target=_serve, args=(listener, server, answers, hanging)
        )
        thread.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for one in hanging:
                one.close()


def _serve(
    listener: socket.socket,
    server: SseServer,
    answers: tuple[bytes, ...],
    hanging: list[socket.socket],
) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return  # it was shut down
        with contextlib.suppress(ConnectionError):
            server.requests.append(_headers(connection))
            index = min(len(server.requests), len(answers)) - 1
            connection.sendall(answers[index])
            if isinstance(answers[index], Hanging):
                hanging.append(connection)
                continue
            connection.shutdown(socket.SHUT_WR)
        connection.close()


def _headers(connection: socket.socket) -> dict[str, str]:
    text = b""
    while not text.endswith(b"\r\n\r\n"):
        data = connection.recv(1 << 16)
        if not data:
            raise ConnectionResetError
        text += data
    lines = text.decode().split("\r\n")[1:-2]
    pairs = (line.split(": ", 1) for line in lines)
    return {name.lower(): value for name, value in pairs}
