"""Requests that last: what is sent is looked at while the answer goes on.

async with streamed(house, "GET", "/v1/topics/t/stream") as answer:
    await answer.until(lambda: b"data:" in answer.body)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from tests.unit.http.scene import HOST, LOCAL, HttpHouse

WAIT_S = 45.0


async def happens(condition: Callable[[], object]) -> None:
    """Return when it does; what does not happen for so long never will."""
    for _ in range(int(WAIT_S * 1000)):
        if condition():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not happen")


class Streamed:
    """One request under way. ``blocked``: the client does not read."""

    def __init__(self, kind: str) -> None:
        self.messages: list[Any] = []
        self.coming: asyncio.Queue[Any] = asyncio.Queue()
        self.reads = asyncio.Event()
        self.reads.set()
        self.changed = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self._kind = kind

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        pairs = self.messages[0]["headers"]
        return {name.decode(): value.decode() for name, value in pairs}

    @property
    def writes(self) -> list[bytes]:
        """The pieces of the body that are not empty."""
        return [one["body"] for one in self.messages[1:] if one.get("body")]

    @property
    def body(self) -> bytes:
        return b"".join(self.writes)

    @property
    def ended(self) -> bool:
        return any(
            one["type"] == "http.response.body" and not one.get("more_body")
            for one in self.messages
        )

    def send(self, data: bytes, *, more: bool = True) -> None:
        """A part of the body of the request."""
        self.coming.put_nowait(
            {"type": "http.request", "body": data, "more_body": more}
        )

    def disconnect(self) -> None:
        gone = {"type": f"{self._kind}.disconnect", "code": 1006}
        self.coming.put_nowait(gone)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                self.changed.clear()
                if condition():
                    return
                assert self.task is not None
                waiting = asyncio.create_task(self.changed.wait())
                await asyncio.wait(
                    {waiting, self.task}, return_when=asyncio.FIRST_COMPLETED
                )
                waiting.cancel()
                if self.task.done() and not condition():
                    self.task.result()
                    raise AssertionError(f"it ended with {self.messages[-3:]}")

    async def until_done(self) -> None:
        assert self.task is not None
        await asyncio.wait_for(self.task, WAIT_S)

    # What the application is given

    async def receive(self) -> Any:
        return await self.coming.get()

    async def take(self, message: Any) -> None:
        await self.reads.wait()
        self.messages.append(message)
        self.changed.set()


@asynccontextmanager
async def streamed(
    house: HttpHouse,
    method: str,
    path: str,
    headers: Mapping[str, str] | None = None,
    *,
    kind: str = "http",
    body: bool = False,
    token: str | None = None,
) -> AsyncIterator[Streamed]:
    """``body``: the request has one, which the test sends."""
    url = urlsplit(path)
    said = {"host": HOST, **(headers or {})}
    if "cookie" not in said:
        said.setdefault("authorization", f"Bearer {token or house.token}")
    scope = {
        "type": kind,
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http" if kind == "http" else "ws",
        "path": url.path,
        "raw_path": url.path.encode(),
        "query_string": url.query.encode(),
        "root_path": "",
        "headers": [(k.lower().encode(), v.encode()) for k, v in said.items()],
        "client": LOCAL,
        "server": ("127.0.0.1", 8420),
        "subprotocols": [],
        "extensions": {"websocket.http.response": {}},
    }
    answer = Streamed(kind)
    if kind == "websocket":
        answer.coming.put_nowait({"type": "websocket.connect"})
    elif not body:
        answer.send(b"", more=False)
    answer.task = asyncio.ensure_future(house.app(scope, answer.receive, answer.take))
    try:
        yield answer
    finally:
        answer.reads.set()
        if not answer.task.done():
            answer.disconnect()
            await asyncio.wait({answer.task}, timeout=WAIT_S)
        assert answer.task.done(), "it does not end with its client"
        answer.task.result()
