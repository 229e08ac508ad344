"""Answers in JSON, and the headers that every answer has."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

# No cross-origin header anywhere: pages of others may not read what we say.
SECURITY: tuple[tuple[bytes, bytes], ...] = (
    (b"x-content-type-options", b"nosniff"),
    (
        b"content-security-policy",
        (
            b"default-src 'self'; img-src 'self' data:; object-src 'none'; "
            b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        ),
    ),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)

JSON = "application/json"
_NOT_STORED = {"cache-control": "no-store"}

_encode = msgspec.json.Encoder().encode


def json_answer(value: object, status: int = 200) -> Response:
    """A value as JSON; what it is at another moment is not known."""
    return Response(_encode(value), status, _NOT_STORED, JSON)
