from __future__ import annotations

from dataclasses import dataclass, fields

import pytest

from penstock.errors import InvalidOption
from penstock.model.option import check_options, limit_of, option


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    free: int = option(1, "anything goes")
    low: int = option(1, "not too low", least=1)
    high: float = option(1.0, "not too high", most=5)
    positive: float = option(1.0, "some", above=0)
    port: int | None = option(80, "a port, or none", least=0, most=99)
    word: str = option("a", "a or b", choices=("a", "b"))

    def __post_init__(self) -> None:
        check_options(self)


def test_an_option_is_a_field_with_its_default_and_help() -> None:
    assert Options() == Options(free=1, low=1, word="a")
    assert fields(Options)[0].metadata["help"] == "anything goes"


@pytest.mark.parametrize(
    ("name", "value", "limit"),
    [
        ("low", 0, "at least 1"),
        ("high", 5.1, "at most 5"),
        ("high", float("nan"), "at most 5"),
        ("positive", 0, "more than 0"),
        ("positive", float("nan"), "more than 0"),
        ("port", -1, "0 to 99"),
        ("port", 100, "0 to 99"),
        ("word", "c", "'a' or 'b'"),
    ],
)
def test_what_is_outside_its_limits_is_refused(
    name: str, value: object, limit: str
) -> None:
    with pytest.raises(InvalidOption) as caught:
        Options(**{name: value})  # type: ignore[arg-type]

    assert (caught.value.name, caught.value.limit) == (name, limit)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("free", -5),
        ("low", 1),
        ("high", 5),
        ("positive", 0.001),
        ("port", 0),
        ("port", 99),
        ("port", None),
        ("word", "b"),
    ],
)
def test_limits_themselves_are_inside(name: str, value: object) -> None:
    assert getattr(Options(**{name: value}), name) == value  # type: ignore[arg-type]


def test_fields_made_otherwise_have_no_limit() -> None:
    assert limit_of({}) == ""
