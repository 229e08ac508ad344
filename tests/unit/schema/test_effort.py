from __future__ import annotations

from typing import Any

import pytest

from penstock.clock import ManualClock
from penstock.errors import TooMuchWork, UnsupportedSchema
from penstock.schema import judged, mock
from penstock.schema.effort import Effort


def test_steps_come_to_an_end() -> None:
    effort = Effort(10)
    effort.spend(10)

    with pytest.raises(TooMuchWork, match=r"10 steps, .* broker.max_schema_steps"):
        effort.spend()


def test_so_does_the_time() -> None:
    clock = ManualClock()
    effort = Effort(10_000, 2.0, clock.now_s)
    effort.spend(2000)
    clock.advance(2.5)

    with pytest.raises(TooMuchWork, match=r"2.0 s, .* broker.max_schema_s"):
        effort.spend(2000)


@pytest.mark.parametrize(
    "pair",
    [
        [{"enum": [f"{tag}{n}" for n in range(3000)]} for tag in "ab"],
        [{"allOf": [{"minimum": n + k} for n in range(500)]} for k in (0, 1)],
        [
            {"properties": {f"p{n}": {"type": t} for n in range(500)}}
            for t in ("null", "string")
        ],
        [{"anyOf": [{"pattern": f"^{tag}{n}"} for n in range(300)]} for tag in "ab"],
    ],
    ids=["enum", "allOf", "properties", "anyOf"],
)
def test_comparing_is_counted(pair: list[Any]) -> None:
    with pytest.raises(TooMuchWork):
        judged("full", pair[0], pair[1], Effort(1000))


def test_making_up_is_counted_for_all_documents() -> None:
    effort = Effort(500)

    with pytest.raises(TooMuchWork):
        list(mock({"type": "array", "items": True, "minItems": 20}, 1, 100, effort))


def test_items_that_differ_are_too_few() -> None:
    schema = {"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}

    with pytest.raises(UnsupportedSchema, match="minItems is 3, only 2 different"):
        list(mock({**schema, "minItems": 3}, 1, 1))
