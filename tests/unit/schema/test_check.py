from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.errors import InvalidSchema
from penstock.schema import check
from penstock.schema.check import (
    MAX_CHECKS,
    MAX_ORDINARY_CHECKS,
    MAX_REASON_CHARACTERS,
    Checker,
    Misfit,
    compiled,
)

ORDER = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"price": {"type": "number", "minimum": 0}},
                "required": ["price"],
                "additionalProperties": False,
            },
        },
        "odd name": {"enum": ["a", "b"]},
        "when": {"type": "string", "format": "date-time"},
    },
}


def checked(schema: Any, payload: bytes) -> Misfit | None:
    return Checker(msgspec.json.encode(schema)).misfit(payload)


@pytest.mark.parametrize(
    "payload",
    [b"{}", b'{"items":[{"price":0.5}]}', b'{"when":"2024-01-01T00:00:00"}'],
)
def test_what_fits_is_let_through(payload: bytes) -> None:
    assert checked(ORDER, payload) is None


@pytest.mark.parametrize(
    ("payload", "path", "reason"),
    [
        (b'{"items":[{"price":1},{"price":"x"}]}', "$.items[1].price", '"x" is not of'),
        (b'{"items":[{"price":-1}]}', "$.items[0].price", "-1 is less than"),
        (b'{"items":[{}]}', "$.items[0].price", "is required"),
        (b'{"items":[{"price":1,"x":2}]}', "$.items[0].x", "is not allowed here"),
        (b'{"odd name":"c"}', '$["odd name"]', '"c" is not one of'),
        (b'{"when":"yesterday"}', "$.when", '"yesterday" is not a "date-time"'),
        (b"[1]", "$", "[1] is not of type"),
        (b"nonsense", "$", "is not JSON: invalid character"),
        (b"", "$", "is not JSON"),
        (b'{"items":"\xff"}', "$", "is not JSON"),
        (b"[" * 100_000, "$", "is not JSON"),
    ],
)
def test_path_and_reason_are_exact(payload: bytes, path: str, reason: str) -> None:
    found = checked(ORDER, payload)

    assert found is not None
    assert found.path == path
    assert reason in found.reason


TAGGED = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"kind": {"enum": [kind]}, "size": {"type": "integer"}},
            "required": ["kind", "size"],
        }
        for kind in ("cat", "dog")
    ]
}


def test_of_a_union_the_branch_that_was_meant_gives_the_reason() -> None:
    assert checked(TAGGED, b'{"kind":"dog","size":"big"}') == Misfit(
        "$.size", '"big" is not of type "integer"'
    )


def test_if_no_branch_was_meant_all_of_them_are_named() -> None:
    found = checked({"anyOf": [{"type": "string"}, {"type": "null"}]}, b"7")

    assert found is not None
    assert found.path == "$"
    assert '"string"' in found.reason
    assert '"null"' in found.reason
    assert checked(TAGGED, b'{"kind":"cow","size":1}') is not None


def test_a_reason_is_short_however_long_the_payload() -> None:
    found = checked({"type": "integer"}, b'"%b"' % (b"y" * 100_000))

    assert found is not None
    assert len(found.reason) <= MAX_REASON_CHARACTERS
    assert found.reason.endswith('is not of type "integer"')


def test_what_cannot_be_checked_does_not_fit() -> None:
    checker = Checker(b'{"type":"integer"}')

    class Broken:
        def is_valid(self, value: Any) -> bool:
            raise ValueError("Too deep\nfor me")

    checker._validator = Broken()  # type: ignore[assignment]

    assert checker.misfit(b"1") == Misfit("$", "cannot be checked: too deep")


def test_a_long_list_of_reasons_is_cut() -> None:
    schema = {"enum": ["x" * 100] * 2 + ["y" * 300]}

    found = checked(schema, b'"%b"' % (b"z" * 100))

    assert found is not None
    assert len(found.reason) == MAX_REASON_CHARACTERS
    assert found.reason.endswith("…")


def test_misfits_are_counted_by_index() -> None:
    checker = Checker(b'{"type":"integer"}')

    found = list(checker.misfits([b"1", b"x", b"2", b'"3"']))

    assert [index for index, _ in found] == [1, 3]


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "text"}, "$.type"),
        ({"properties": {"a": {"minimum": "x"}}}, "$.properties.a.minimum"),
        ({"pattern": "(("}, "$.pattern"),
        ({"pattern": "(?=a)b"}, "$.pattern"),
    ],
)
def test_what_is_no_schema_is_refused_with_its_place(schema: Any, path: str) -> None:
    with pytest.raises(InvalidSchema) as caught:
        compiled(schema)

    assert caught.value.path == path


def test_other_drafts_are_refused() -> None:
    compiled({"$schema": "https://json-schema.org/draft/2020-12/schema"})

    with pytest.raises(InvalidSchema, match="2020-12"):
        compiled({"$schema": "http://json-schema.org/draft-07/schema#"})


@pytest.mark.parametrize(
    "reference", ["#/$defs/none", "file:/etc/hosts", "http://localhost:1/x"]
)
def test_nothing_is_fetched(reference: str) -> None:
    with pytest.raises(InvalidSchema):
        compiled({"$ref": reference})


def test_a_schema_that_is_nested_too_deep_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(900):
        schema = {"not": schema}

    with pytest.raises(InvalidSchema):
        compiled(schema)


def heavy(weight: int) -> Checker:
    branches = [{"type": "array"}, *[{}] * (weight - 2)]
    return Checker(msgspec.json.encode({"allOf": branches}))


def test_payloads_of_a_batch_have_one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[bytes] = []

    def decode(payload: bytes) -> Any:
        decoded.append(payload)
        return msgspec.json.decode(payload)

    monkeypatch.setattr(check, "_decode", decode)
    places = MAX_CHECKS // 1000 * 3 // 10  # its bytes count a little as well
    payload = b"[" + b"1," * (places - 2) + b"1]"

    found = dict(heavy(1000).misfits([payload] * 60))

    assert len(decoded) == 3
    assert list(found) == list(range(3, 60))
    why = "cannot be checked: too many checks of what was published together"
    assert {one.reason for one in found.values()} == {f"{why}, limit {MAX_CHECKS}"}


def test_one_that_is_too_large_keeps_no_other_from_being_checked() -> None:
    large = b"[" + b"1," * (MAX_CHECKS // 1000) + b"1]"

    found = dict(heavy(1000).misfits([b"[]", large, b"[1]", b"1"]))

    assert list(found) == [1, 3]
    assert "is too large for this schema" in found[1].reason
    assert f"limit {MAX_CHECKS}" in found[1].reason


def test_an_ordinary_schema_has_a_limit_as_well() -> None:
    places = MAX_ORDINARY_CHECKS // 200
    payload = b"[" + b"1," * (places * 2 // 5) + b"1]"

    assert list(heavy(200).misfits([payload] * 2)) == []
    assert [index for index, _ in heavy(200).misfits([payload] * 4)] == [2, 3]


def test_places_of_ordinary_batches_are_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check, "_places", None)

    assert list(heavy(20).misfits([b"[1,2,3]"] * 1000)) == []


def test_a_long_string_counts_as_several_places() -> None:
    schema = {"allOf": [{"pattern": "^(a|b)*$"}] * 1000}
    long = b'"' + b"ab" * 20_000 + b'"'

    found = checked(schema, long)

    assert checked(schema, b'"ab"') is None
    assert found is not None
    assert "is too large for this schema" in found.reason
