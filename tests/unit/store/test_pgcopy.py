from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.store.documents import documents_of
from penstock.store.pgcopy import encoded
from penstock.store.store import DocumentRow

ROWS = st.lists(
    st.tuples(
        st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=20),
        st.integers(-(1 << 63), (1 << 63) - 1),
        st.text(max_size=20).map(lambda text: text.encode(errors="replace")),
    ),
    max_size=10,
)


def plainly(rows: list[DocumentRow]) -> bytes:
    """The format, row by row, as its documentation says it."""
    parts = [b"PGCOPY\n\xff\r\n\0", struct.pack(">ii", 0, 0)]
    for key, version, doc in rows:
        text = key.encode()
        parts += [
            struct.pack(">hi", 3, len(text)),
            text,
            struct.pack(">iq", 8, version),
        ]
        parts += [struct.pack(">i", len(doc) + 1), b"\x01", doc]
    return b"".join([*parts, struct.pack(">h", -1)])


@pytest.mark.slow
@given(ROWS)
def test_columns_are_encoded_as_rows_would_be(rows: list[DocumentRow]) -> None:
    documents = documents_of("t", rows)

    assert b"".join(map(bytes, encoded(documents))) == plainly(list(documents.rows()))


def test_chunk_is_encoded_alone() -> None:
    documents = documents_of("t", [(f"{n}", n, b"%d" % n) for n in range(5)])

    _, chunk, _ = documents.chunks(2, 1 << 20)

    assert b"".join(map(bytes, encoded(chunk))) == plainly(list(chunk.rows()))
    assert len(chunk) == 2
