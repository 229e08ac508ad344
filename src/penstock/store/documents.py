"""Documents on their way into a store: one of each key, sorted, in text that can be.

Whole columns at a time, in Arrow; only documents with ``\\u`` escapes, which few
writers use, and text that is no UTF-8 are looked at one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import BadDocument

if TYPE_CHECKING:
    from penstock.store.store import DocumentRow, DocumentRows

# PostgreSQL has no longer keys in an index.
MAX_KEY_BYTES = 1024
# MongoDB has no documents beyond 16 MB, and needs some of it for itself.
MAX_DOCUMENT_BYTES = 15 << 20
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"

# Escapes from left to right, so that a backslash that is escaped itself begins none.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u0000|u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Documents:
    """Columns of one length: keys ascending, each once. Large binary, int64, same."""

    keys: Any
    versions: Any
    docs: Any

    def __len__(self) -> int:
        return len(self.keys)

    def chunks(self, rows: int, size_bytes: int) -> Iterator[Documents]:
        """Parts of at most so many rows, and about so many bytes."""
        total_bytes = max(1, self.docs.nbytes)
        average = max(1, total_bytes // max(1, len(self)))
        step = max(1, min(rows, size_bytes // average))
        for begin in range(0, len(self), step):
            yield Documents(
                self.keys.slice(begin, step),
                self.versions.slice(begin, step),
                self.docs.slice(begin, step),
            )

    def rows(self) -> Iterator[DocumentRow]:
        """One after the other, for a driver that has no columns."""
        keys = self.keys.cast(pa.large_string()).to_pylist()
        return zip(keys, self.versions.to_pylist(), self.docs.to_pylist(), strict=True)

    def key_at(self, row: int) -> str:
        return cast(bytes, self.keys[row].as_py()).decode()


def documents_of(collection: str, rows: DocumentRows) -> Documents:
    """What of ``rows`` is to be written; raises BadDocument."""
    if not isinstance(rows, pa.Table | pa.RecordBatch):
        rows = _from_rows(collection, rows)
    missing = {"key", "version", "doc"}.difference(rows.schema.names)
    if missing:
        raise BadDocument(collection, "", f"there is no column {sorted(missing)[0]}")
    keys = _text(_column(collection, rows, "key", pa.large_binary()))
    versions = _column(collection, rows, "version", pa.int64())
    docs = _text(_column(collection, rows, "doc", pa.large_binary()))
    keys = _replaced(keys, b"\0", lambda key: key.replace(b"\0", REPLACEMENT.encode()))
    found = _newest(keys, versions, _replaced(docs, b"\\u", without_bad_escapes))
    _check(collection, found)
    return found


def without_bad_escapes(document: bytes) -> bytes:
    """The JSON with U+FFFD for U+0000 and for halves of surrogate pairs."""
    return _ESCAPE.sub(
        lambda escape: b"\\ufffd" if escape[1] is not None else escape[0], document
    )


def _from_rows(collection: str, rows: Any) -> Any:
    keys, versions, docs = zip(*rows, strict=True) if rows else ((), (), ())
    try:
        return pa.table(
            {
                "key": pa.array(map(_encoded, keys), pa.large_binary()),
                "version": pa.array(versions, pa.int64()),
                "doc": pa.array(docs, pa.large_binary()),
            }
        )
    except (pa.ArrowException, AttributeError, OverflowError, TypeError) as error:
        raise BadDocument(collection, "", f"no row of a store: {error}") from error


def _encoded(key: str) -> bytes:
    try:
        return key.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return (
            key.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        )


def _column(collection: str, rows: Any, name: str, kind: Any) -> Any:
    column = rows.column(name)
    if column.null_count:
        raise BadDocument(collection, "", f"column {name} has nulls")
    try:
        column = column.cast(kind)
    except pa.ArrowException as error:
        raise BadDocument(collection, "", f"column {name}: {error}") from error
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _text(column: Any) -> Any:
    """The same bytes if all are UTF-8, else with replacements."""
    try:
        column.cast(pa.large_string())
    except pa.ArrowInvalid:
        fixed = [
            value.decode(errors="replace").encode() for value in column.to_pylist()
        ]
        return pa.array(fixed, pa.large_binary())
    return column


def _replaced(column: Any, pattern: bytes, fix: Any) -> Any:
    """The column, with ``fix`` of every value that holds the pattern."""
    data = column.buffers()[2]
    if data is None or pattern not in data.to_pybytes():
        return column  # found sooner than by a look at each value
    suspects = pc.match_substring(column, pattern)
    fixed = [fix(value) for value in column.filter(suspects).to_pylist()]
    return pc.replace_with_mask(column, suspects, pa.array(fixed, pa.large_binary()))


def _newest(keys: Any, versions: Any, docs: Any) -> Documents:
    order = pc.sort_indices(
        pa.table({"key": keys, "version": versions}),
        sort_keys=[("key", "ascending"), ("version", "descending")],
    )
    keys = keys.take(order)
    if len(keys) > 1:
        firsts = pc.not_equal(keys.slice(1), keys.slice(0, len(keys) - 1))
        firsts = pa.concat_arrays([pa.array([True]), firsts])
        keys, order = keys.filter(firsts), order.filter(firsts)
    return Documents(keys, versions.take(order), docs.take(order))


def _check(collection: str, found: Documents) -> None:
    for column, limit_bytes, what in (
        (found.keys, MAX_KEY_BYTES, "key"),
        (found.docs, MAX_DOCUMENT_BYTES, "document"),
    ):
        lengths = pc.binary_length(column)
        longest = pc.max(lengths).as_py() or 0
        if longest > limit_bytes:
            key = found.key_at(pc.index(lengths, longest).as_py())
            reason = f"{what} of {longest} bytes exceeds {limit_bytes}"
            raise BadDocument(collection, key, reason)
