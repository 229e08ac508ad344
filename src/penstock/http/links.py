"""Addresses for people: of the dashboard, and of one that logs a browser in."""

from __future__ import annotations

import ipaddress


def dashboard(host: str, port: int, *, tls: bool = False) -> str:
    """Where a browser on this machine finds the dashboard."""
    return f"{'https' if tls else 'http'}://{_reachable(host)}:{port}/"


def login_link(host: str, port: int, token: str, *, tls: bool = False) -> str:
    """The same with a token behind ``#``, where no server and no log sees it."""
    return f"{dashboard(host, port, tls=tls)}#token={token}"


def _reachable(host: str) -> str:
    """A host to go to: listening everywhere includes here."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.is_unspecified:
        return "127.0.0.1" if address.version == 4 else "[::1]"
    return f"[{host}]" if address.version == 6 else host
