"""The key of an event, read from its JSON without building all of it.

A decoder is made for the path alone: it checks the whole text, and keeps one value.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import msgspec

from penstock.errors import InvalidOption


class NoObject(Exception):
    """JSON that is no object."""


class KeyReader:
    """Reads the value at ``path``: names with dots between them, or nothing."""

    def __init__(self, path: str) -> None:
        names = path.split(".") if path else []
        if not all(names):
            raise InvalidOption("key", path, "names with dots between them")
        self._names = names
        kind: Any = str | int | None
        for name in reversed(names):
            field = ("value", kind, None)
            made = msgspec.defstruct("Level", [field], rename={"value": name})
            kind = made | None
        top = made if names else msgspec.defstruct("Object", [])
        self._decode = msgspec.json.Decoder(top).decode
        levels = ".".join(["value"] * len(names))
        self._value = attrgetter(levels) if levels else None

    def key(self, data: bytes) -> bytes | None:
        """None if there is nothing of use; numbers are keys as they are written.

        Raises NoObject, ValueError for what is no JSON, RecursionError.
        """
        try:
            found: object = self._decode(data)
        except msgspec.ValidationError:
            # Something of another kind on the way, or no object at all.
            return self._walk(msgspec.json.decode(data))
        if self._value is None:
            return None
        try:
            return _encoded(self._value(found))
        except AttributeError:
            return None  # one on the way is null, or not there

    def _walk(self, found: object) -> bytes | None:
        if not isinstance(found, dict):
            raise NoObject
        for name in self._names:
            if not isinstance(found, dict):
                return None
            found = found.get(name)
        return _encoded(found)


def _encoded(found: object) -> bytes | None:
    if isinstance(found, str):
        return found.encode()
    if isinstance(found, int) and not isinstance(found, bool):
        return b"%d" % found
    return None
