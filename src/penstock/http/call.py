"""One request on its way: what a route's function gets, and how it is described."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from penstock.access.account import Account
from penstock.errors import LoginRefused, TooLarge, TooSlow
from penstock.http.access import Access, Who
from penstock.http.guard import ANONYMOUS, Guard
from penstock.http.house import House
from penstock.http.sessions import WebSession

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request whose sender may do what its route needs.

    ``path`` has the parameters of the path, unquoted; ``session`` is there if a cookie
    said who it is.
    """

    house: House
    guard: Guard
    request: Request
    path: Mapping[str, str]
    who: Who
    session: WebSession | None = None

    async def body(self, most: int | None = None) -> bytes:
        """The whole body, within the limits; raises TooLarge, TooSlow.

        What is declared too large is refused before any of it is read. ``most``: this
        route takes even less than the settings say. An unknown sender has no more time
        for it than for its headers.
        """
        options = self.house.options
        limit = min(options.max_body_bytes, most or options.max_body_bytes)
        setting = "the limit here"
        if limit == options.max_body_bytes:
            setting = "http.max_body_bytes"
        declared = self.request.headers.get("content-length", "")
        if declared.isdecimal() and int(declared) > limit:
            raise TooLarge("the body", int(declared), limit, setting)
        time_s, time = options.body_s, "http.body_s"
        if self.who is ANONYMOUS and options.header_s <= time_s:
            time_s, time = options.header_s, "http.header_s"
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(time_s):
                async for part in self.request.stream():
                    size += len(part)
                    if size > limit:
                        raise TooLarge("the body", size, limit, setting)
                    parts.append(part)
        except TimeoutError:
            raise TooSlow("the body", time_s, time) from None
        self.check_still()
        return b"".join(parts)

    async def parts(self) -> AsyncIterator[bytes]:
        """The body as it comes, without an end to wait for; ends with its sender."""
        try:
            async for part in self.request.stream():
                if part:
                    yield part
        except ClientDisconnect:
            return

    def check_still(self) -> None:
        """Go on only if the login counts that it came by; raises LoginRefused.

        Asked whenever it has waited for its sender: users are removed meanwhile.
        """
        if not self.still():
            raise LoginRefused("the login counts no more")

    @property
    def account(self) -> Account | None:
        """Of the user who sent it; None of a token."""
        return self.house.broker.accounts.of(self.who.grants)

    def still(self) -> bool:
        """Whether the login by which it came still counts."""
        return self.guard.still(self.who, self.session)

    def need(self, access: Access, topic: str | None = None) -> None:
        """Go on only with that access as well; raises NotAllowed."""
        self.who.need(access, topic)

    def need_as(self, topic: str, subscriber: str) -> None:
        """Go on only if that subscriber may have the topic; raises NotAllowed."""
        self.who.need_as(topic, subscriber)


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketCall:
    """A WebSocket that is not accepted yet, of a client that may have it."""

    house: House
    guard: Guard
    socket: WebSocket
    path: Mapping[str, str]
    who: Who
    session: WebSession | None = None

    @property
    def account(self) -> Account | None:
        """Of the user who sent it; None of a token."""
        return self.house.broker.accounts.of(self.who.grants)

    def still(self) -> bool:
        """Whether the login by which it came still counts."""
        return self.guard.still(self.who, self.session)

    def need(self, access: Access, topic: str | None = None) -> None:
        """Go on only with that access as well; raises NotAllowed."""
        self.who.need(access, topic)

    def need_as(self, topic: str, subscriber: str) -> None:
        """Go on only if that subscriber may have the topic; raises NotAllowed."""
        self.who.need_as(topic, subscriber)


Handle = Callable[[Call], Awaitable[Response]]
HandleSocket = Callable[[SocketCall], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Special:
    """A route that is more than a question to the desk.

    ``path`` has parameters in braces, each one segment; ``topic`` names the one that
    access is about. ``describe`` is the operation as OpenAPI has it, but that a body or
    an answer in JSON may be given by its type: ``"body": Type`` (or in a content of
    ``requestBody``), and in a response ``"answer": Type``. Parameters of the path,
    problems and security are added.
    """

    method: str
    path: str
    access: Access
    handle: Handle
    describe: Mapping[str, Any] = field(default_factory=dict)
    topic: str = "topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialSocket:
    """A WebSocket; raising PenstockError before it is accepted refuses it."""

    path: str
    access: Access
    handle: HandleSocket
    describe: Mapping[str, Any] = field(default_factory=dict)
    topic: str = "topic"
