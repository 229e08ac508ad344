"""In front of everything that HTTP serves: for whom a request is, and whose it is.

A page of another site may have its name resolved to this server (DNS rebinding), and is
of the same origin for the browser then. So a request has to name this server as it is
known: by a loopback name or address, by the address that it has come in at, by the
settings ``server.host``, ``http.public_url`` and ``http.allowed_hosts``.

Behind a proxy, the client's address is put in place of the proxy's.

Who is behind a proxy, those proxies say that the settings name. A proxy adds the
address that it was reached from at the end of a header; what stands in front of it may
be made up by the client. So the last address counts that is not a proxy's itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from penstock.errors import Misdirected
from penstock.http import problem
from penstock.http.answers import SECURITY
from penstock.http.options import HttpOptions
from penstock.http.places import (
    LOCAL,
    Network,
    address_in,
    host_in,
    networks_in,
    within,
)


def client_of(peer: str, headers: Headers, proxies: Sequence[Network]) -> str:
    """Where a request comes from; the peer itself unless it is a proxy."""
    found = address_in(peer)
    if found is None or not within(found, proxies):
        return peer
    said = [one for one in (_plain(headers), _standard(headers)) if one]
    clients = {_last(one, proxies) for one in said}
    # Two headers that differ: one of them is not the proxy's.
    client = clients.pop() if len(clients) == 1 else None
    return client or peer


def _last(chain: list[str], proxies: Sequence[Network]) -> str | None:
    """The last one that is no proxy; None if that is no address, or none is left."""
    for one in reversed(chain):
        found = address_in(one)
        if found is None or not within(found, proxies):
            return None if found is None else str(found)
    return None


def _plain(headers: Headers) -> list[str]:
    said = ",".join(headers.getlist("x-forwarded-for"))
    return [one.strip() for one in said.split(",")] if said else []


def _standard(headers: Headers) -> list[str]:
    """The addresses of RFC 7239; one that cannot be read is empty."""
    said = ",".join(headers.getlist("forwarded"))
    return [_for(one) for one in said.split(",")] if said else []


def _for(element: str) -> str:
    for pair in element.split(";"):
        name, _, value = pair.strip().partition("=")
        if name.strip().lower() == "for":
            return value.strip().strip('"')
    return ""


ANY = "*"


class HostCheck:
    """An application in front of another one."""

    def __init__(self, app: ASGIApp, options: HttpOptions, host: str) -> None:
        self._app = app
        self._proxies = networks_in(options.proxies)
        self._hosts = Hosts(options, host)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        client = scope.get("client")
        if client and self._proxies:
            address = client_of(str(client[0]), headers, self._proxies)
            scope["client"] = (address, client[1])
        error = self._hosts.refusal(headers, scope.get("server"))
        if error is None:
            await self._app(scope, receive, send)
            return
        answer = problem.refusal(error)
        answer.raw_headers.extend(SECURITY)
        if scope["type"] == "http":
            await answer(scope, receive, send)
        else:
            await WebSocket(scope, receive, send).send_denial_response(answer)


class Hosts:
    """The names and addresses of a server."""

    def __init__(self, options: HttpOptions, host: str) -> None:
        listed = (options.allowed_hosts or "").split()
        public = urlsplit(options.public_url or "").hostname or ""
        self._any = ANY in listed
        self._names = {LOCAL, *map(host_in, (host, public, *listed))}
        self._addresses = set(map(address_in, (host, public, *listed)))

    def refusal(self, headers: Headers, server: object) -> Misdirected | None:
        """Why a request that came in at this address is none for us."""
        host = headers.get("host")
        # Without Host, as in HTTP/1.0, it is no browser.
        if self._any or host is None:
            return None
        name = host_in(host)
        if name and (name in self._names or self._is_address(name, server)):
            return None
        return Misdirected(host)

    def _is_address(self, name: str, server: object) -> bool:
        found = address_in(name)
        if found is None:
            return False
        here = address_in(str(server[0])) if isinstance(server, tuple | list) else None
        return found.is_loopback or found in self._addresses or found == here
