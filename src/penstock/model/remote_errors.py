"""Errors of a server, as its clients raise them.

A program catches ``UnknownTopic`` whether the broker is in its process or behind an
address. A server tells an error by name, text, hint and fields; the client raises one
of that class that has the same fields and text. It is a ``ServerRefused`` as well, for
programs that catch all that a server refuses.

Of what a server tells nothing is believed that is not listed here:

- The class is one of those that brokers raise. What blames a side (``ProtocolError``),
  or what a program meets on its own side (``ClientError``, ``SparkError``, …), stays a
  plain ``ServerRefused``, so that no server can say that its client is not connected.
- A field is one of the class, of its type and not too large, or it is all taken for a
  plain ``ServerRefused``. Fields of later versions are passed over.
- No constructor is called with what a server told.

A field that was not told, as older servers tell none, is an AttributeError.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NoReturn, get_type_hints

import msgspec

from penstock import errors
from penstock.errors import PenstockError, ServerRefused

# Of a field, as MessagePack: names have 256 bytes, reasons of schemas some hundred.
MAX_FIELD_BYTES = 4096

# What a broker, and the server around it, raise.
_FAMILIES = (
    errors.InvalidOption,
    errors.InvalidName,
    errors.MissingExtra,
    errors.ConfigError,
    errors.BrokerError,
    errors.SchemaError,
    errors.HttpError,
    errors.InvalidQuery,
    errors.LogError,
)
KNOWN: Mapping[str, type[PenstockError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, _FAMILIES)
}
# What a field that may be anything is told as, if it is one of these.
_Scalar = str | int | float | bool | None
_encode = msgspec.msgpack.Encoder().encode


def public_fields(error: PenstockError) -> dict[str, object]:
    """The fields of an error that a client may know; too large ones are left out."""
    if type(error).__name__ not in KNOWN:
        return {}
    shown = vars(error.without_paths())
    return {
        name: shown[name]
        for name in error.fields
        if name in shown and _is_public(shown[name])
    }


def remote_error(
    error: str, text: str, hint: str = "", fields: Mapping[str, object] | None = None
) -> ServerRefused:
    """What a client raises for an error that a server has told."""
    if error not in KNOWN:
        return ServerRefused(error, text, hint)
    try:
        checked = _checked(error, fields or {})
    except (ValueError, OverflowError, RecursionError):
        return ServerRefused(error, text, hint)
    return _class_of(error)(error, text, hint, checked)


class _Remote(ServerRefused):
    """In front of the class that a server named."""

    def __init__(
        self, error: str, text: str, hint: str, fields: Mapping[str, object]
    ) -> None:
        vars(self).update(fields, error=error, text=text, hint=hint)
        self.args = (error, text, hint)

    def __reduce__(self) -> tuple[object, ...]:
        return remote_error, self.args, vars(self)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"the server told no {name} of {type(self).__name__}")


@cache
def _class_of(name: str) -> type[_Remote]:
    known = KNOWN[name]
    body = {"fields": known.fields, "__module__": known.__module__}
    return type(name, (_Remote, known), body)


@cache
def _types(name: str) -> dict[str, object]:
    hints = get_type_hints(KNOWN[name])
    types = {field: hints[field] for field in KNOWN[name].fields}
    return {field: _Scalar if t is object else t for field, t in types.items()}


def _checked(name: str, given: Mapping[str, object]) -> dict[str, object]:
    """Fields as the class of the name has them; raises ValueError for others."""
    found: dict[str, object] = {}
    for field, type_ in _types(name).items():
        if field in given:
            found[field] = msgspec.convert(given[field], type_)
            if len(_encode(found[field])) > MAX_FIELD_BYTES:
                raise ValueError(field)
    return found


def _is_public(value: object) -> bool:
    if not isinstance(value, str | int | float | list | tuple | Mapping | None):
        return False
    try:
        return len(_encode(value)) <= MAX_FIELD_BYTES
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
