"""The HTTP application: finds the route, asks who it is, answers, and survives.

A request is refused with a problem that says why. A mistake of ours is logged and costs
that request only.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from penstock.errors import Ending, NoRoute, PenstockError, WrongMethod
from penstock.http import problem
from penstock.http.access import Access
from penstock.http.answers import SECURITY
from penstock.http.asking import Asking
from penstock.http.call import Call, Handle, SocketCall, Special, SpecialSocket
from penstock.http.guard import Guard
from penstock.http.house import House
from penstock.http.openapi import document
from penstock.http.pages import StaticFiles
from penstock.http.router import Router, segments_of
from penstock.http.routes import ROUTES, SPECIAL

logger = logging.getLogger(__name__)

# What a WebSocket that is refused after all is closed with: policy violation.
REFUSED = 1008
FAILED = 1011

RouteTarget = tuple[Handle, Access, str]


def make_app(house: House) -> ASGIApp:
    """The application of a house; nothing is started by making it."""
    return App(house)


class App:
    def __init__(self, house: House) -> None:
        self._house = house
        self._guard = Guard(house)
        self._pages = StaticFiles()
        self._routes: Router[RouteTarget] = Router()
        self._sockets: Router[SpecialSocket] = Router()
        self._asking = [Asking(route, house.desk.find(route.verb)) for route in ROUTES]
        self._document = b""
        for one in self._asking:
            route = one.route
            target: RouteTarget = one, route.access, route.topic
            self._routes.add(route.method, route.path, target)
        for special in SPECIAL:
            self._add(special)
        self._routes.add("GET", "/openapi.json", (self._openapi, Access.NONE, "topic"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)

    def _add(self, special: Special | SpecialSocket) -> None:
        if isinstance(special, SpecialSocket):
            self._sockets.add("GET", special.path, special)
        else:
            target: RouteTarget = special.handle, special.access, special.topic
            self._routes.add(special.method, special.path, target)

    # Requests

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = _Sending(send)
        try:
            answer = await self._answer(scope, receive)
        except ClientDisconnect:
            return
        except PenstockError as error:
            answer = self._refused(scope, error)
        except Exception:
            answer = self._failed(scope)
        try:
            await answer(scope, receive, sending)
        except ClientDisconnect:
            return
        except Exception:
            # An answer that was begun cannot be taken back: the connection is cut.
            failed = self._failed(scope)
            if not sending.begun:
                await failed(scope, receive, sending)

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        segments = segments_of(scope["raw_path"])
        try:
            target, path = self._routes.find(scope["method"], segments)
        except (NoRoute, WrongMethod):
            page = self._pages.find(scope, segments)
            if page is None:
                raise
            return page
        handle, access, topic = target
        entry = await self._guard.enter(scope, access, path.get(topic))
        request = Request(scope, receive)
        call = Call(
            house=self._house,
            guard=self._guard,
            request=request,
            path=path,
            who=entry.who,
            session=entry.session,
        )
        return await handle(call)

    async def _openapi(self, call: Call) -> Response:
        # Made when a client asks for it: it takes a while, and most never do.
        self._document = self._document or document(self._asking, SPECIAL)
        headers = {"cache-control": "no-cache"}
        return Response(self._document, 200, headers, "application/json")

    def _refused(self, scope: Scope, error: PenstockError) -> Response:
        if problem.status_of(error) == HTTPStatus.INTERNAL_SERVER_ERROR:
            return self._failed(scope)
        return problem.refusal(error)

    def _failed(self, scope: Scope) -> Response:
        """Called while the mistake is handled, so that its traceback is logged."""
        logger.exception(
            "%s %s failed",
            scope.get("method", "WebSocket"),
            scope["path"],
            extra={"action": "request_failed", "path": scope["path"]},
        )
        return problem.failure()

    # WebSockets

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = _Sending(send)
        socket = WebSocket(scope, receive, sending)
        try:
            if self._house.opened.ending:
                raise Ending
            special, path = self._sockets.find("GET", segments_of(scope["raw_path"]))
            entry = await self._guard.enter(
                scope, special.access, path.get(special.topic)
            )
            await special.handle(
                SocketCall(
                    house=self._house,
                    guard=self._guard,
                    socket=socket,
                    path=path,
                    who=entry.who,
                    session=entry.session,
                )
            )
        except PenstockError as error:
            await self._refuse_socket(socket, sending, self._refused(scope, error))
        except Exception:
            await self._refuse_socket(socket, sending, self._failed(scope))

    async def _refuse_socket(
        self, socket: WebSocket, sending: _Sending, answer: Response
    ) -> None:
        if sending.closed:
            return
        if sending.begun:
            code = FAILED if answer.status_code >= 500 else REFUSED
            await socket.close(code)
        else:
            await socket.send_denial_response(answer)


class _Sending:
    """Sends, with the headers that every answer has, and knows how far it is."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.begun = False
        self.closed = False

    async def __call__(self, message: Message) -> None:
        kind = message["type"]
        if kind in ("http.response.start", "websocket.http.response.start"):
            message = {**message, "headers": _secured(message)}
        self.begun = True
        self.closed = self.closed or kind == "websocket.close"
        await self._send(message)


def _secured(message: Mapping[str, object]) -> list[tuple[bytes, bytes]]:
    headers = message.get("headers", ())
    # Starlette gives pairs of bytes; the type of a message does not say so.
    return [*headers, *SECURITY]  # type: ignore[misc]
