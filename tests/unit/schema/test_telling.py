from __future__ import annotations

from typing import Any

from penstock.schema.check import MAX_BRANCHED, UNTOLD, Checker, can_tell
from penstock.schema.document import canonical

EITHER = {"anyOf": [{"const": 1}, {"const": 2}]}


def test_reasons_outside_of_unions_are_told_however_many() -> None:
    schema = {"items": {"type": "integer"}}

    assert can_tell(schema, ["x"] * 1000)
    assert Checker(canonical(schema)).misfit(b'["x","y"]') is not None


def test_branches_of_unions_are_counted() -> None:
    assert can_tell({"items": EITHER}, [0] * (MAX_BRANCHED // 2))
    assert not can_tell({"items": EITHER}, [0] * (MAX_BRANCHED // 2 + 1))


def test_unions_that_hold_each_other_are_counted_as_often_as_they_are_tried() -> None:
    node: Any = {"properties": {"of": {"$ref": "#"}}}
    schema = {"anyOf": [node, node]}
    value: Any = 1
    for _ in range(5):
        value = {"of": value}

    assert can_tell(schema, value)
    for _ in range(5):
        value = {"of": value}
    assert not can_tell(schema, value)


def test_of_a_batch_only_the_first_are_told() -> None:
    checker = Checker(b'{"type":"integer"}')

    reasons = [found.reason for _, found in checker.misfits([b'"x"'] * 101)]

    assert reasons[99] == '"x" is not of type "integer"'
    assert reasons[100] == UNTOLD
