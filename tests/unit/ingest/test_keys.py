from __future__ import annotations

import pytest

from penstock.errors import InvalidOption
from penstock.ingest.sorting import KeyReader, NoObject

_LONG = 123456789012345678901234567890


@pytest.mark.parametrize(
    ("data", "key"),
    [
        (b'{"a": {"b-c": "x"}, "d": [1, 2]}', b"x"),
        (b'{"a": {"b-c": 7}}', b"7"),
        (b'{"a": {"b-c": 123456789012345678901234567890}}', b"%d" % _LONG),
        ('{"a": {"b-c": "ü"}}'.encode(), "ü".encode()),
        (b'{"a": {"b-c": null}}', None),
        (b'{"a": {"b-c": true}}', None),
        (b'{"a": {"b-c": 1.5}}', None),
        (b'{"a": {"b-c": ["x"]}}', None),
        (b'{"a": {}}', None),
        (b'{"a": null}', None),
        (b'{"a": "b-c"}', None),
        (b'{"a": [{"b-c": "x"}]}', None),
        (b"{}", None),
    ],
)
def test_a_key_is_text_or_a_number_at_its_place(data: bytes, key: bytes | None) -> None:
    assert KeyReader("a.b-c").key(data) == key


@pytest.mark.parametrize("path", ["", "a", "a.b"])
@pytest.mark.parametrize("data", [b"[]", b"null", b'"a"', b"1", b" [1]"])
def test_what_is_no_object_is_told_apart(path: str, data: bytes) -> None:
    with pytest.raises(NoObject):
        KeyReader(path).key(data)


@pytest.mark.parametrize("path", ["", "a.b"])
@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"a": x}', b"{} {}", b'{"message": panic}', b'{"x": {]}']
)
def test_what_is_no_json_is_told_apart(path: str, data: bytes) -> None:
    with pytest.raises(ValueError):
        KeyReader(path).key(data)


def test_without_a_path_there_is_no_key() -> None:
    assert KeyReader("").key(b'{"a": 1}') is None


@pytest.mark.parametrize("path", [".", "a.", ".a", "a..b"])
def test_a_path_has_names(path: str) -> None:
    with pytest.raises(InvalidOption, match="names with dots between them"):
        KeyReader(path)
