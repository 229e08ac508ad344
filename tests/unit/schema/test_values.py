from __future__ import annotations

from typing import Any

import pytest

from penstock.schema.values import among, equal, shown, type_of


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (None, "null"),
        (True, "boolean"),
        (1, "number"),
        (1.5, "number"),
        ("", "string"),
        ([], "array"),
        ({}, "object"),
    ],
)
def test_every_value_has_a_type(value: Any, type_: str) -> None:
    assert type_of(value) == type_


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        ([1, {"a": None}], [1.0, {"a": None}], True),
        ([1], [True], False),
        ({"a": 1}, {"b": 1}, False),
        ([1], [1, 2], False),
        ("a", "a", True),
    ],
)
def test_values_are_equal_as_json_has_it(one: Any, other: Any, same: bool) -> None:
    assert equal(one, other) is same
    assert among(one, [other]) is same


def test_a_long_value_is_not_shown_whole() -> None:
    assert shown("a" * 1000).endswith("a…")
    assert shown({"a": 1}) == '{"a":1}'
