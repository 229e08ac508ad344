"""A plain HTTP client of a server in a test, by the standard library."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.serving import Serving

TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


def token_of(server: Serving) -> str:
    """The admin token of a server's data directory."""
    return (server.data / "http-admin-token").read_text().strip()


class Http:
    """One request at a time, each on a connection of its own."""

    def __init__(self, server: Serving, token: str | None = "") -> None:
        self.address = ("127.0.0.1", server.ports["http"])
        self.token = token_of(server) if token == "" else token

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """What is no bytes is sent as JSON."""
        said = dict(headers or {})
        if self.token is not None:
            said.setdefault("Authorization", f"Bearer {self.token}")
        data = body if isinstance(body, bytes) else None
        if body is not None and data is None:
            data = json.dumps(body).encode()
            said.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(*self.address, timeout=TIMEOUT_S)
        try:
            connection.request(method, path, data, said)
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            connection.close()

    @contextmanager
    def raw(self) -> Iterator[socket.socket]:
        """A connection to write anything to."""
        with socket.create_connection(self.address, TIMEOUT_S) as sock:
            yield sock


def answer_of(sock: socket.socket) -> Reply:
    """The next answer on a connection."""
    answer = http.client.HTTPResponse(sock)
    answer.begin()
    found = {name.lower(): value for name, value in answer.getheaders()}
    return Reply(answer.status, found, answer.read())
