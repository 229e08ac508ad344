"""Columns as the bytes of PostgreSQL's binary COPY, with no loop over the rows.

    header   "PGCOPY\\n" 0xff "\\r\\n" 0x00, flags and extension length (both 0, int32)
    row      int16 3 fields
             int32 length, key as UTF-8
             int32 8, version as int64
             int32 length, 0x01 (the version of jsonb on the wire), document as UTF-8
    trailer  int16 -1

All numbers big endian.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.store.documents import Documents

HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER = b"\xff\xff"

_FIELDS = b"\0\x03"
_EIGHT = b"\0\0\0\x08"
_JSONB = b"\x01"


def encoded(documents: Documents) -> list[Any]:
    """Buffers to send one after the other."""
    keys, docs = documents.keys, documents.docs
    rows = pc.binary_join_element_wise(
        _constant(_FIELDS),
        _numbers(_lengths(keys), 4),
        keys,
        _constant(_EIGHT),
        _numbers(documents.versions.to_numpy(zero_copy_only=False), 8),
        _numbers(_lengths(docs) + len(_JSONB), 4),
        _constant(_JSONB),
        docs,
        _constant(b""),  # between them
    )
    return [HEADER, _bytes_of(rows), TRAILER]


def _constant(value: bytes) -> Any:
    return pa.scalar(value, pa.large_binary())


def _lengths(column: Any) -> Any:
    return pc.binary_length(column).to_numpy(zero_copy_only=False)


def _numbers(values: Any, width: int) -> Any:
    swapped = np.ascontiguousarray(values.astype(f">i{width}"))
    column = pa.Array.from_buffers(
        pa.binary(width), len(swapped), [None, pa.py_buffer(swapped)]
    )
    return column.cast(pa.binary()).cast(pa.large_binary())


def _bytes_of(column: Any) -> memoryview:
    """All values of the column behind each other, as they lie in memory."""
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64)[
        column.offset : column.offset + len(column) + 1
    ]
    return memoryview(data)[int(ends[0]) : int(ends[-1])]
