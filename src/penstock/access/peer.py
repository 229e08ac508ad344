"""The peer at the other end: who it is, since when, and how much was said."""

from __future__ import annotations

from itertools import count

_numbers = count(1)


class Peer:
    """Kept by what talks to it: a connection, a stream, a handler of a program.

    The number is one that no other has in this process.
    """

    __slots__ = (
        "address",
        "bytes_in",
        "bytes_out",
        "gateway",
        "name",
        "number",
        "since_s",
    )

    def __init__(
        self, gateway: str, since_s: float, address: str = "", name: str = ""
    ) -> None:
        self.number = next(_numbers)
        self.gateway = gateway
        self.since_s = since_s
        self.address = address
        self.name = name
        self.bytes_in = 0
        self.bytes_out = 0
