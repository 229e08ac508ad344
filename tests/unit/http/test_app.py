from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from penstock.http.access import Access
from penstock.http.app import FAILED, REFUSED, App
from penstock.http.call import Call
from penstock.http.router import Router
from tests.unit.http.scene import HOST, LOCAL, HttpHouse, http_house
from tests.unit.server.scene import run

XSS = "<script>alert(1)</script>"


@pytest.mark.parametrize(
    ("method", "path", "status", "error"),
    [
        ("GET", "/v1", 404, "NoRoute"),
        ("GET", "/v1/nothing", 404, "NoRoute"),
        ("GET", "/v1/topics/", 404, "NoRoute"),
        ("GET", "//v1/topics", 404, "NoRoute"),
        ("GET", "/v1//topics", 404, "NoRoute"),
        ("GET", "/v1/../v1/topics", 404, "NoRoute"),
        ("GET", "/v1/topics/%2e%2e", 404, "UnknownTopic"),
        ("GET", "/v1/topics/..%2f..%2fetc%2fpasswd", 404, "UnknownTopic"),
        ("GET", "/assets/..%2f..%2fapp.py", 404, "NoRoute"),
        ("GET", "/assets/%2e%2e/app.py", 404, "NoRoute"),
        ("GET", "/v1/topics/%00", 400, "BadRequest"),
        ("GET", "/v1/topics/%ff", 400, "BadRequest"),
        ("GET", "v1/topics", 400, "BadRequest"),
        ("PATCH", "/v1/topics", 405, "WrongMethod"),
        ("OPTIONS", "/v1/topics", 405, "WrongMethod"),
        ("TRACE", "/", 404, "NoRoute"),
        ("POST", "/ui/", 404, "NoRoute"),
    ],
)
def test_what_leads_nowhere_is_a_problem(
    tmp_path: Path, method: str, path: str, status: int, error: str
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask(method, path)

            assert (answer.status, answer.json()["error"]) == (status, error)
            assert answer.headers["content-type"] == "application/problem+json"

    run(scene())


@pytest.mark.parametrize(
    "path",
    [
        f"/v1/topics/{XSS}",
        "/v1/topics/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "/%3Cscript%3Ealert(1)%3C%2Fscript%3E",
    ],
)
def test_markup_comes_back_as_json_that_no_browser_runs(
    tmp_path: Path, path: str
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask("GET", path.replace("</", "%3C%2F"))

            assert answer.status == 404
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["x-content-type-options"] == "nosniff"

    run(scene())


def test_markup_in_names_and_texts_comes_back_as_it_was(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.ask("POST", "/v1/topics", {"name": XSS})
            path = "/v1/topics/%3Cscript%3Ealert(1)%3C%2Fscript%3E"
            await house.ask("PUT", f"{path}/documentation", {"text": XSS})
            await house.ask("POST", f"{path}/comments", {"text": XSS})

            for route in ("", "/documentation", "/comments"):
                answer = await house.ask("GET", path + route)
                assert answer.status == 200
                assert XSS in answer.body.decode()
                assert answer.headers["content-type"] == "application/json"
                assert answer.headers["x-content-type-options"] == "nosniff"

    run(scene())


def test_a_mistake_of_ours_costs_that_request_only(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            with monkeypatch.context() as patched:
                patched.setattr(house.broker.log, "topic", broken)
                answer = await house.ask("GET", "/v1/topics/t")
            after = await house.ask("GET", "/v1/topics")

            assert answer.status == 500
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "planned" not in answer.body.decode()
            assert after.status == 200

    with caplog.at_level(logging.ERROR, "penstock"):
        run(scene())

    (record,) = caplog.records
    assert record.action == "request_failed"  # type: ignore[attr-defined]
    assert "/v1/topics/t" in record.getMessage()
    assert record.exc_info is not None


def broken(*_: object) -> None:
    raise RuntimeError("planned")


def test_head_is_like_get(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            assert (await house.ask("HEAD", "/v1/topics")).status == 200

    run(scene())


def test_what_is_neither_request_nor_socket_is_left_alone(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            await house.app({"type": "lifespan"}, never, never)

    run(scene())


async def never(*_: object) -> Any:
    raise AssertionError("nothing is to be sent or received")


class Socket:
    """A WebSocket that somebody opens; what the server does with it."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.coming: asyncio.Queue[Any] = asyncio.Queue()
        self.coming.put_nowait({"type": "websocket.connect"})

    async def open(self, house: HttpHouse, path: str, **headers: str) -> None:
        said = {"host": HOST, "authorization": f"Bearer {house.token}", **headers}
        scope = {
            "type": "websocket",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(k.encode(), v.encode()) for k, v in said.items()],
            "client": LOCAL,
            "subprotocols": [],
            "extensions": {"websocket.http.response": {}},
        }

        async def send(message: Any) -> None:
            self.sent.append(message)

        await house.app(scope, self.coming.get, send)

    @property
    def status(self) -> int:
        assert self.sent[0]["type"] == "websocket.http.response.start"
        return int(self.sent[0]["status"])


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/nothing", {}, 404),
        ("/v1/topics/t/socket", {"authorization": "Bearer no"}, 401),
        ("/v1/topics/t/socket", {"origin": "http://evil.example"}, 403),
        ("/v1/topics/t/socket", {}, 404),
        ("/v1/topics/%ff/socket", {}, 400),
    ],
)
def test_a_websocket_is_refused_with_a_problem(
    tmp_path: Path, path: str, headers: dict[str, str], status: int
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            socket = Socket()
            await socket.open(house, path, **headers)

            assert socket.status == status
            names = {name for name, _ in socket.sent[0]["headers"]}
            assert b"x-content-type-options" in names

    run(scene())


def test_a_server_that_ends_takes_no_websocket(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            house.house.opened.end()
            socket = Socket()
            await socket.open(house, "/v1/topics/t/socket")

            assert socket.status == 503

    run(scene())


@pytest.mark.parametrize(("fails", "code"), [(True, FAILED), (False, REFUSED)])
def test_a_websocket_that_was_accepted_is_closed_with_a_code(
    tmp_path: Path, *, fails: bool, code: int
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            app = house.app
            assert isinstance(app, App)
            (special, _) = app._sockets.find("GET", ("v1", "topics", "t", "socket"))

            async def handle(call: Any) -> None:
                await call.socket.accept()
                if fails:
                    raise RuntimeError("planned")
                call.house.broker.log.topic("none")

            app._sockets = Router()
            app._sockets.add("GET", special.path, replace(special, handle=handle))
            socket = Socket()
            await socket.open(house, "/v1/topics/t/socket")

            assert socket.sent[-1]["type"] == "websocket.close"
            assert socket.sent[-1]["code"] == code

    run(scene())


def test_the_dashboard_needs_no_token(tmp_path: Path) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            answer = await house.ask("GET", "/ui/topics/t", token=None)

            assert answer.status in (200, 503), "503: it is not built"
            assert answer.headers["content-type"].startswith("text/")

    run(scene())


class Failing(Response):
    """An answer that fails, before or after it has begun."""

    def __init__(self, error: Exception, *, begun: bool) -> None:
        super().__init__()
        self._error = error
        self._begun = begun

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if self._begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise self._error


@pytest.mark.parametrize(
    ("error", "begun", "sent", "logged"),
    [
        (RuntimeError("planned"), False, [500], 1),
        (RuntimeError("planned"), True, [200], 1),
        (ClientDisconnect(), True, [200], 0),
    ],
)
def test_an_answer_that_fails_is_cut_off_or_a_problem(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    *,
    begun: bool,
    sent: list[int],
    logged: int,
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            app = house.app
            assert isinstance(app, App)

            async def handle(call: Call) -> Response:
                return Failing(error, begun=begun)

            app._routes.add("GET", "/v1/planted", (handle, Access.NONE, "topic"))

            assert [(await house.ask("GET", "/v1/planted")).status] == sent

    with caplog.at_level(logging.ERROR, "penstock"):
        run(scene())

    assert len(caplog.records) == logged


def test_a_client_that_goes_before_its_body_came_gets_no_answer(
    tmp_path: Path,
) -> None:
    async def scene() -> None:
        async with http_house(tmp_path) as house:
            scope = {
                "type": "http",
                "method": "POST",
                "path": "/v1/session",
                "raw_path": b"/v1/session",
                "query_string": b"",
                "headers": [(b"content-type", b"application/json")],
                "client": LOCAL,
            }

            async def gone() -> Any:
                return {"type": "http.disconnect"}

            await house.app(scope, gone, never)

    run(scene())
