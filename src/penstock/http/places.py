"""Hosts and addresses as requests and settings name them."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

LOCAL = "localhost"

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def host_in(text: str) -> str:
    """The name or address of a Host header, without its port; empty if it is none."""
    if not text or any(one in text for one in "/?#@\\%") or not text.isprintable():
        return ""
    behind = text.partition("]")[2]
    if behind and not behind.startswith(":"):  # urlsplit leaves it out
        return ""
    try:
        parts = urlsplit(f"//{text}")
        _ = parts.port  # raises if it is none
        return (parts.hostname or "").removesuffix(".")
    except ValueError:
        return ""


def address_in(text: str) -> IpAddress | None:
    """An address, without brackets, port or zone; None if it is none."""
    for one in (text, host_in(text)):
        try:
            # What has no zones is taken as a whole, and is none with one.
            plain = one.partition("%")[0]
            found = ipaddress.ip_address(plain if ":" in plain else one)
        except ValueError:
            continue
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
            return found.ipv4_mapped
        return found
    return None


def networks_in(text: str | None) -> list[Network]:
    """Addresses and networks, separated by spaces; raises ValueError."""
    return [ipaddress.ip_network(one) for one in (text or "").split()]


def within(address: IpAddress, networks: Iterable[Network]) -> bool:
    return any(address in one for one in networks)
