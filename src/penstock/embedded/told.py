"""Errors of a server, raised as what they are.

A program catches ``InvalidPayload`` whether the broker is in its process or a server.
What a server tells is a name and a text; the error made of them is of that class and
a ServerRefused as well. Its fields are those of ServerRefused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from penstock import errors
from penstock.errors import PenstockError, ServerRefused


@contextmanager
def as_told() -> Iterator[None]:
    """Raise what a server refuses as the error it named."""
    try:
        yield
    except ServerRefused as refused:
        made = _class_of(refused.error)
        if made is None:
            raise
        raise made(refused.error, refused.text, refused.hint) from refused


@cache
def _class_of(name: str) -> type[ServerRefused] | None:
    known = getattr(errors, name, None)
    if not (isinstance(known, type) and issubclass(known, PenstockError)):
        return None
    if issubclass(known, ServerRefused) or issubclass(ServerRefused, known):
        return None
    body = {"__init__": ServerRefused.__init__, "__str__": ServerRefused.__str__}
    return type(name, (known, ServerRefused), body)
