"""A JSON Schema document: read, written the same way every time, references followed.

References that are followed stay within the document (``#`` and a JSON pointer).
"""

from __future__ import annotations

import re
from typing import Any, Literal
from urllib.parse import unquote

import msgspec

from penstock.errors import InvalidSchema

# A JSON Schema of draft 2020-12: an object, or true (anything) or false (nothing).
Schema = dict[str, Any] | bool
Mode = Literal["backward", "forward", "full", "none"]
MODES: tuple[Mode, ...] = ("backward", "forward", "full", "none")

# Deeper than any type, and far from what would exhaust the stack.
MAX_NESTING = 100

NOT_JSON = (msgspec.MsgspecError, ValueError, RecursionError)

_canonical = msgspec.json.Encoder(order="sorted").encode
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


def parsed(given: object) -> Schema:
    """A document from its text or from plain values; raises InvalidSchema."""
    if isinstance(given, bytes | str):
        try:
            given = msgspec.json.decode(given)
        except NOT_JSON as error:
            raise InvalidSchema("$", f"is not JSON: {error}") from None
    if not isinstance(given, dict | bool):
        raise InvalidSchema("$", "has to be an object, true or false")
    _check_nesting(given, MAX_NESTING)
    return given


def canonical(document: object) -> bytes:
    """The JSON text of a document: sorted keys, no spaces; raises InvalidSchema."""
    try:
        return _canonical(document)
    except (*NOT_JSON, TypeError) as error:
        raise InvalidSchema("$", f"cannot be written as JSON: {error}") from None


def resolved(root: Schema, reference: str) -> Schema | None:
    """What a reference within the document names; None if it names nothing here."""
    if not reference.startswith("#"):
        return None
    found: Any = root
    for part in unquote(reference[1:]).split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif isinstance(found, list) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    is_pointer = reference == "#" or reference.startswith("#/")
    return found if is_pointer and isinstance(found, dict | bool) else None


def _check_nesting(value: Any, room: int) -> None:
    if not room:
        raise InvalidSchema("$", f"is nested deeper than {MAX_NESTING} levels")
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            _check_nesting(one, room - 1)


def step(part: str | int) -> str:
    """One step of a path: ``.price``, ``[2]``, ``["odd name"]``."""
    if isinstance(part, int):
        return f"[{part}]"
    if _PLAIN_NAME.match(part):
        return f".{part}"
    return f"[{msgspec.json.encode(part).decode()}]"
