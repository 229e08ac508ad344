"""Rows of PostgreSQL as JSON: numbers, booleans and JSON as such, the rest as text."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.cdc.change import NOTHING
from penstock.cdc.pgoutput import UNCHANGED, Relation, Tuple

_BOOL = 16
_INTEGERS = frozenset({20, 21, 23, 26})
_DECIMALS = frozenset({700, 701, 1700})
_JSON = frozenset({114, 3802})
_NOT_JSON = frozenset({b"NaN", b"Infinity", b"-Infinity"})
# The schema that is not named.
PUBLIC = "public"

_encode = msgspec.json.Encoder().encode


class Table:
    """One relation: how its rows become documents, and what their key is.

    ``document``: the column that is the document, if one is; ``key``: names of the
    columns of the primary key. Where the identity of rows is an index, its columns are
    the key: PostgreSQL tells no others of a row that is deleted.
    """

    def __init__(
        self, relation: Relation, key: tuple[str, ...], document: str | None
    ) -> None:
        names = self._names = [column.name for column in relation.columns]
        self.name = relation.name
        if relation.namespace != PUBLIC:
            self.name = f"{relation.namespace}.{relation.name}"
        self._heads = [_encode(name) + b":" for name in names]
        self._encoders = [_encoder(column.type) for column in relation.columns]
        self._document = names.index(document) if document in names else None
        if relation.identity == "i" or not set(key) <= set(names):
            self._key = _identity(relation)
        else:
            self._key = [names.index(name) for name in key]

    def document(self, row: Tuple | None) -> msgspec.Raw:
        """A row as JSON; values that were not sent are not there."""
        if row is None:
            return NOTHING
        if self._document is not None:
            value = row[self._document]
            if value is None or value is UNCHANGED:
                return NOTHING
            return msgspec.Raw(self._encoders[self._document](value))
        parts = [
            head + (b"null" if value is None else encoder(value))
            for head, encoder, value in zip(
                self._heads, self._encoders, row, strict=True
            )
            if value is not UNCHANGED
        ]
        return msgspec.Raw(b"{" + b",".join(parts) + b"}")

    @property
    def column_names(self) -> list[str]:
        return self._names

    @property
    def key_names(self) -> list[str]:
        """The columns of the key; none if there is no key."""
        return [self._names[index] for index in self._key]

    def order(self, key: str) -> tuple[bytes, ...]:
        """A key as something that can be compared with others."""
        if len(self._key) == 1:
            return (key.encode(),)
        return tuple(text.encode() for text in msgspec.json.decode(key, type=list[str]))

    def key(self, row: Tuple) -> str | None:
        """The key as text; a JSON list of texts if it has several columns."""
        if len(self._key) == 1:
            only = row[self._key[0]]
            return None if only is None else only.decode(errors="replace")
        values = [row[index] for index in self._key]
        if not values or None in values:
            return None
        texts = [(value or b"").decode(errors="replace") for value in values]
        return _encode(texts).decode()


def filled(new: Tuple, old: Tuple | None) -> Tuple:
    """The new row with what was not sent because it is as it was before."""
    if old is None or UNCHANGED not in new:
        return new
    return tuple(
        before if after is UNCHANGED else after
        for after, before in zip(new, old, strict=True)
    )


def _identity(relation: Relation) -> list[int]:
    """The columns that PostgreSQL itself tells rows apart by, unless it is by all."""
    if relation.identity == "f":
        return []
    return [at for at, column in enumerate(relation.columns) if column.keyed]


def _encoder(kind: int) -> Callable[[bytes], bytes]:
    """How a value of a type, given as text, becomes JSON."""
    if kind in _JSON or kind in _INTEGERS:
        return bytes
    if kind == _BOOL:
        return _bool
    return _decimal if kind in _DECIMALS else _text


def _bool(value: bytes) -> bytes:
    return b"true" if value == b"t" else b"false"


def _decimal(value: bytes) -> bytes:
    return _text(value) if value in _NOT_JSON else value


def _text(value: bytes) -> bytes:
    return _encode(value.decode(errors="replace"))
