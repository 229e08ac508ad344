from __future__ import annotations

import pytest

from penstock.errors import InvalidSchema
from penstock.schema.document import canonical, parsed, resolved, step


@pytest.mark.parametrize("given", [b'{"b": 1, "a": 2}', '{"b": 1, "a": 2}'])
def test_a_document_is_read_from_text_and_written_one_way(given: bytes | str) -> None:
    assert canonical(parsed(given)) == b'{"a":2,"b":1}'
    assert canonical(parsed({"b": 1, "a": 2})) == b'{"a":2,"b":1}'
    assert parsed(b"true") is True


@pytest.mark.parametrize("given", [b"{", b"[]", "7", None, 3, b"[" * 100_000])
def test_what_is_no_document_is_refused(given: object) -> None:
    with pytest.raises(InvalidSchema) as caught:
        parsed(given)

    assert caught.value.path == "$"


def test_a_document_that_is_nested_too_deep_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="nested deeper than 100"):
        parsed(b'{"not":' * 99 + b"[[]]" + b"}" * 99)


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(InvalidSchema):
        canonical({"const": object()})


ROOT = {
    "$defs": {"a/b": {"type": "null"}, "~": True, "list": {"anyOf": [{}, False]}},
    "not": 3,
}


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", ROOT),
        ("#/$defs/a~1b", {"type": "null"}),
        ("#/%24defs/a~1b", {"type": "null"}),
        ("#/$defs/~0", True),
        ("#/$defs/list/anyOf/1", False),
        ("#/$defs/list/anyOf/2", None),
        ("#/$defs/none", None),
        ("#/not", None),
        ("#anchor", None),
        ("other.json#/a", None),
        ("file:/etc/passwd", None),
    ],
)
def test_references_are_followed_within_the_document(
    reference: str, found: object
) -> None:
    assert resolved(ROOT, reference) == found


@pytest.mark.parametrize(
    ("part", "text"),
    [("price", ".price"), (2, "[2]"), ("odd name", '["odd name"]'), ("", '[""]')],
)
def test_a_step_of_a_path_is_written_as_people_do(part: str | int, text: str) -> None:
    assert step(part) == text
