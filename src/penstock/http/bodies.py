"""Bodies of requests that say things in another way than the verbs they are for.

A payload is any JSON value, or text, or base64; a verb takes bytes.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from penstock.errors import BadRequest, InvalidArgument
from penstock.http.reading import MAX_QUESTION_BYTES
from penstock.schema import Mode
from penstock.wire.json_text import NOT_JSON

_NULL = Raw(b"null")


def _null() -> Raw:
    """A default that no schema has to show."""
    return _NULL


class RequestBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a body says, as the arguments of its verb.

    What may be anything is text until it is known that it may be said. ``most``: bytes
    of it; None for as many as the settings allow of any body.
    """

    most: ClassVar[int | None] = MAX_QUESTION_BYTES

    def arguments(self) -> dict[str, object]:
        raise NotImplementedError


class EditBody(RequestBody):
    """The payload to send instead: one of ``payload``, ``text`` and ``base64``."""

    most: ClassVar[int | None] = None
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


class CheckBody(RequestBody):
    """A ``schema`` that could follow, and ``payloads`` that are to fit it."""

    # Payloads that are checked may have as much as a question by themselves.
    most: ClassVar[int | None] = MAX_QUESTION_BYTES + (1 << 18)
    schema: Raw = msgspec.field(default_factory=_null)
    payloads: list[Raw] | None = None
    mode: Mode | None = None

    def arguments(self) -> dict[str, object]:
        payloads = self.payloads
        return {
            "schema": value_of(self.schema),
            "payloads": None if payloads is None else [bytes(one) for one in payloads],
            "mode": self.mode,
        }


def is_said(value: object) -> bool:
    """Whether a field of a body has a value, which null is not."""
    return value is not None and not (isinstance(value, Raw) and value == _NULL)


def value_of(text: Raw) -> object:
    """What JSON says; raises BadRequest."""
    try:
        return msgspec.json.decode(text)
    except NOT_JSON as error:
        raise BadRequest(f"the body is no JSON: {error}") from None


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
