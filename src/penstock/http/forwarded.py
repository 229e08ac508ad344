"""Who is behind a proxy: what those say that the settings name.

A proxy adds the address that it was reached from at the end of a header; what stands in
front of it may be made up by anybody. So the last address counts that is not a proxy's
itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.datastructures import Headers

from penstock.http.places import Network, address_in, within


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
