"""Bodies of requests that say things in another way than the verbs they are for.

A payload is any JSON value, or text, or base64; a verb takes bytes.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET, Raw, UnsetType

from penstock.errors import InvalidArgument
from penstock.schema import Mode


class Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a body says, as the arguments of its verb."""

    def arguments(self) -> dict[str, object]:
        raise NotImplementedError


class EditBody(Body):
    """The payload to send instead: one of ``payload``, ``text`` and ``base64``."""

    payload: Raw | UnsetType = UNSET
    text: str | UnsetType = UNSET
    base64: bytes | UnsetType = UNSET
    reason: str = ""
    dry_run: bool = False

    def arguments(self) -> dict[str, object]:
        return {
            "payload": payload_of("dead-letters.edit", self),
            "reason": self.reason,
            "dry_run": self.dry_run,
        }


class CheckBody(Body):
    """A ``schema`` that could follow, and ``payloads`` that are to fit it."""

    schema: object = None
    payloads: list[Raw] | None = None
    mode: Mode | None = None

    def arguments(self) -> dict[str, object]:
        payloads = self.payloads
        return {
            "schema": self.schema,
            "payloads": None if payloads is None else [bytes(one) for one in payloads],
            "mode": self.mode,
        }


def payload_of(verb: str, body: EditBody) -> bytes:
    """The payload that a body holds; raises InvalidArgument unless it is one."""
    said = [
        value
        for value in (body.payload, body.text, body.base64)
        if not isinstance(value, UnsetType)
    ]
    if len(said) != 1:
        raise InvalidArgument(verb, "say one of `payload`, `text` and `base64`")
    value = said[0]
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return bytes(value)
