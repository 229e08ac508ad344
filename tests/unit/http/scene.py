"""A house with its application, asked without sockets: real broker, engine and files.

async with http_house(tmp_path) as house:
    answer = await house.ask("GET", "/v1/topics")
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from penstock.desk.desk import Desk
from penstock.http.app import make_app
from penstock.http.house import CheckUser, FindUser, House
from penstock.http.key_file import KeyFile, TokenRequest
from penstock.http.keys import Tokens
from penstock.http.options import HttpOptions
from penstock.server.web import EnginePromises
from tests.unit.server import scene

HOST = "127.0.0.1:8420"
LOCAL = ("127.0.0.1", 50_000)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    headers_sent: list[tuple[str, str]] = field(default_factory=list)

    def json(self) -> Any:
        return json.loads(self.body)


class HttpHouse:
    """``token`` is that of an admin, and goes with every question, unless it is not."""

    def __init__(
        self,
        process: scene.House,
        folder: Path,
        options: HttpOptions,
        check_user: CheckUser | None,
        find_user: FindUser | None = None,
    ) -> None:
        self.process = process
        self.broker = process.broker
        self.engine = process.engine
        self.clock = process.clock
        self.files = process.files
        self.key_file = KeyFile(folder)
        token = self.key_file.begin(int(self.clock.now_s() * 1000))
        assert token is not None, "the folder is new"
        self.token = token
        desk = Desk(self.broker)
        self.house = House(
            broker=self.broker,
            desk=desk,
            options=options,
            promises=EnginePromises(self.engine),
            keys=Tokens(self.key_file),
            clock=self.clock,
            figures=desk.figures,
            check_user=check_user,
            find_user=find_user,
        )
        self.app = make_app(self.house)

    def new_token(self, name: str, **wanted: Any) -> str:
        now_ms = int(self.clock.now_s() * 1000)
        return self.key_file.add(TokenRequest(name=name, **wanted), now_ms)

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = "",
        headers: Mapping[str, str] | None = None,
        parts: list[bytes] | None = None,
        client: tuple[str, int] = LOCAL,
    ) -> Answer:
        """One request; ``token`` None: without one. ``parts``: the body, as it comes.

        A body that is no bytes is sent as JSON.
        """
        said = {"host": HOST, **(headers or {})}
        if token is not None and "authorization" not in said:
            said["authorization"] = f"Bearer {token or self.token}"
        if parts is None:
            data = b""
            if isinstance(body, bytes):
                data = body
            elif body is not None:
                data = json.dumps(body).encode()
                said.setdefault("content-type", "application/json")
            parts = [data]
            if data:
                said.setdefault("content-length", str(len(data)))
        return await self._send(method, path, said, parts, client)

    async def _send(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        parts: list[bytes],
        client: tuple[str, int],
    ) -> Answer:
        url = urlsplit(path)
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": url.path,
            "raw_path": url.path.encode(),
            "query_string": url.query.encode(),
            "root_path": "",
            "headers": [(k.lower().encode(), v.encode()) for k, v in headers.items()],
            "client": client,
            "server": ("127.0.0.1", 8420),
        }
        coming = [
            {"type": "http.request", "body": part, "more_body": number < len(parts)}
            for number, part in enumerate(parts, 1)
        ]
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if coming:
                return coming.pop(0)
            await asyncio.Event().wait()  # until whoever asks is cancelled
            raise AssertionError("it never is set")

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        start, *rest = sent
        pairs = [(k.decode(), v.decode()) for k, v in start["headers"]]
        data = b"".join(one.get("body", b"") for one in rest)
        return Answer(start["status"], dict(pairs), data, pairs)


@asynccontextmanager
async def http_house(
    folder: Path,
    options: HttpOptions | None = None,
    check_user: CheckUser | None = None,
    find_user: FindUser | None = None,
) -> AsyncIterator[HttpHouse]:
    async with scene.house(folder) as process:
        yield HttpHouse(
            process, folder, options or HttpOptions(), check_user, find_user
        )
