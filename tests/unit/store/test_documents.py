from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import BadDocument
from penstock.store import documents
from penstock.store.documents import Documents, documents_of, without_bad_escapes
from penstock.store.store import DocumentRow

ROWS = st.lists(
    st.tuples(st.text(max_size=3), st.integers(0, 3), st.binary(max_size=5)),
    max_size=20,
)


def keys(found: Documents) -> list[str]:
    return [key for key, _, _ in found.rows()]


@given(ROWS)
def test_one_of_each_key_is_left_sorted_and_the_newest(rows: list[DocumentRow]) -> None:
    found = list(documents_of("t", rows).rows())

    newest: dict[str, int] = {}
    for key, version, _ in rows:
        key = key.replace("\0", "\ufffd")
        newest[key] = max(version, newest.get(key, 0))
    assert [(key, version) for key, version, _ in found] == sorted(
        newest.items(), key=lambda item: item[0].encode()
    )


@given(st.recursive(st.text() | st.none(), lambda inner: st.lists(inner, max_size=3)))
def test_only_bad_escapes_change(value: object) -> None:
    text = json.dumps(value)

    fixed = json.loads(without_bad_escapes(text.encode()))

    assert fixed == json.loads(text.replace("\\u0000", "\\ufffd")) or "\\\\" in text
    assert "\0" not in json.dumps(fixed, ensure_ascii=False)


@given(st.text(st.sampled_from("\\u0dD8cC3a\0x\ud83d\ude00"), max_size=12))
def test_text_without_bad_escapes_is_what_utf_16_makes_of_it(text: str) -> None:
    document = json.dumps(text).encode()

    fixed = json.loads(without_bad_escapes(document))

    # json.dumps pairs neighbouring halves, so does UTF-16.
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert fixed.replace("\ufffd", "") == whole.replace("\0", "").replace("\ufffd", "")


def test_chunks_are_bounded_in_rows_and_bytes() -> None:
    found = documents_of("t", [(f"{n:03}", 1, b"x" * 100) for n in range(100)])

    by_rows = list(found.chunks(30, 1 << 20))
    by_bytes = list(found.chunks(1000, 1100))

    assert [len(chunk) for chunk in by_rows] == [30, 30, 30, 10]
    assert max(len(chunk) for chunk in by_bytes) <= 11
    assert [key for chunk in by_bytes for key in keys(chunk)] == keys(found)
    assert list(documents_of("t", []).chunks(10, 10)) == []


def test_single_document_larger_than_a_chunk_is_one() -> None:
    found = documents_of("t", [("a", 1, b"x" * 100)])

    assert [len(chunk) for chunk in found.chunks(10, 10)] == [1]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (pa.table({"key": ["a"], "version": [1]}), "no column doc"),
        (pa.table({"key": [None], "version": [1], "doc": ["{}"]}), "key has nulls"),
        (pa.table({"key": ["a"], "version": ["x"], "doc": ["{}"]}), "column version"),
        (pa.table({"key": ["a"], "version": [1], "doc": [[1]]}), "column doc"),
        ([("a", 1 << 63, b"{}")], "no row of a store"),
        ([(1, 1, b"{}")], "no row of a store"),
        ([("a", 1, 5)], "no row of a store"),
    ],
)
def test_rows_that_are_none_are_refused(table: object, reason: str) -> None:
    with pytest.raises(BadDocument, match=reason):
        documents_of("t", table)


def test_chunked_and_sliced_tables_are_whole() -> None:
    one = pa.table({"key": ["x", "b"], "version": [1, 1], "doc": ["0", "1"]})
    two = pa.table({"key": ["a", "b"], "version": [1, 2], "doc": ["2", "3"]})

    found = documents_of("t", pa.concat_tables([one.slice(1), two]))

    assert list(found.rows()) == [("a", 1, b"2"), ("b", 2, b"3")]


def test_what_is_too_long_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_DOCUMENT_BYTES", 3)

    with pytest.raises(BadDocument, match="document of 4 bytes exceeds 3") as caught:
        documents_of("t", [("a", 1, b"xxx"), ("b", 1, b"xxxx"), ("c", 1, b"")])

    assert caught.value.key == "b"
