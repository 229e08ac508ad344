"""Documents as MongoDB has them: ``{_id: key, version: …, doc: {…}}``, in BSON.

One after the other, or few at a time, from JSON to BSON with nothing kept of what is in
between: objects for a whole bulk would keep the garbage collector busy.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import bson
import msgspec
from bson.raw_bson import RawBSONDocument

from penstock.errors import BadDocument

if TYPE_CHECKING:
    from penstock.store.store import DocumentRow

# MongoDB's own; with a key and a version beside the document.
MAX_BSON_BYTES = 16 << 20
MAX_INT64 = (1 << 63) - 1


def encoded(collection: str, row: DocumentRow) -> RawBSONDocument:
    """The row in BSON; raises BadDocument for what is no JSON, or beyond a limit."""
    found = _encoded(_document(collection, row))
    if len(found.raw) > MAX_BSON_BYTES:
        reason = f"document of {len(found.raw)} bytes of BSON exceeds {MAX_BSON_BYTES}"
        raise BadDocument(collection, row[0], reason)
    return found


def literal(collection: str, group: list[DocumentRow]) -> RawBSONDocument:
    """An array of the rows, as an expression of a pipeline; raises BadDocument."""
    return _encoded({"$literal": [_document(collection, row) for row in group]})


def groups(
    rows: list[DocumentRow], count: int, size_bytes: int
) -> Iterator[list[DocumentRow]]:
    """Parts of at most so many rows and bytes; what is larger is one by itself."""
    group: list[DocumentRow] = []
    left_bytes = size_bytes
    for row in rows:
        size = len(row[2])
        if group and (len(group) == count or size > left_bytes):
            yield group
            group, left_bytes = [], size_bytes
        group.append(row)
        left_bytes -= size
    if group:
        yield group


def depth_of(row: DocumentRow) -> int:
    """How deep arrays and objects of a document are nested."""
    return _depth(_decode(row[2]))


def with_numbers_that_fit(value: Any) -> Any:
    """The same with floats for integers beyond 64 bits, which MongoDB has none of."""
    match value:
        case dict():
            return {name: with_numbers_that_fit(one) for name, one in value.items()}
        case list():
            return [with_numbers_that_fit(one) for one in value]
        case int() if not -MAX_INT64 - 1 <= value <= MAX_INT64:
            beyond = math.copysign(sys.float_info.max, value > 0 or -1)
            return float(value) if abs(value) < 1 << 1023 else beyond
        case _:
            return value


def _document(collection: str, row: DocumentRow) -> dict[str, Any]:
    key, version, text = row
    try:
        return {"_id": key, "version": version, "doc": _decode(text)}
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadDocument(collection, key, f"is no JSON: {error}") from error


def _encoded(document: dict[str, Any]) -> RawBSONDocument:
    try:
        return RawBSONDocument(bson.encode(document))
    except OverflowError:
        return RawBSONDocument(bson.encode(with_numbers_that_fit(document)))


def _depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max(map(_depth, inner), default=0)


_decode = msgspec.json.Decoder().decode
