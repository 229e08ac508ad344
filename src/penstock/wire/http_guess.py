"""Whether a peer speaks HTTP, or TLS, where lines are spoken: its first bytes tell.

A page in a browser can send a request to any port, with a body of its own making. No
protocol of lines has a first line that begins like a request: their words are lower
case, JSON or numbers.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

# RFC 9110, 9.1 and 7.1; PRI is how HTTP/2 begins.
_METHODS: Final = (
    *(b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE ", b"OPTIONS ", b"TRACE "),
    *(b"PATCH ", b"PRI "),
)
_TARGETS: Final = (b"/", b"*", b"http")
_REQUESTS: Final = (
    *(method + target for method in _METHODS for target in _TARGETS),
    b"CONNECT ",
)
# A handshake record of any version of TLS.
_TLS: Final = b"\x16\x03"
# No more than this is needed to tell.
FIRST_BYTES: Final = max(map(len, _REQUESTS))


class Guess(Enum):
    HTTP = auto()
    TLS = auto()
    OTHER = auto()
    PERHAPS = auto()
    """More bytes will tell."""


def guess(first: bytes) -> Guess:
    """What the first bytes of a connection say."""
    if first.startswith(_REQUESTS):
        return Guess.HTTP
    if first.startswith(_TLS):
        return Guess.TLS
    if any(word.startswith(first) for word in (*_REQUESTS, _TLS)):
        return Guess.PERHAPS
    return Guess.OTHER
