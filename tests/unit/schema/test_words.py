from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from penstock.schema.check import compiled
from penstock.schema.formats import CHECKED
from penstock.schema.words import base64_text, formatted, text_for, word, words


@pytest.mark.parametrize("format_", sorted(CHECKED))
def test_text_of_every_format_that_is_checked_has_that_format(format_: str) -> None:
    validator = compiled({"format": format_})

    for seed in range(50):
        text = formatted(format_, Random(seed))
        assert validator.is_valid(text), f"seed {seed}: {text!r}"


def test_a_format_that_is_not_known_is_left_to_others() -> None:
    assert formatted("binary", Random(1)) is None


@pytest.mark.parametrize(
    ("name", "part"), [("email", "@"), ("customer_name", " "), ("order_id", "-")]
)
def test_text_looks_like_its_name(name: str, part: str) -> None:
    assert part in text_for(name, Random(3))


def test_the_same_seed_says_the_same() -> None:
    assert text_for("city", Random(1)) == text_for("city", Random(1))
    assert text_for("remark", Random(1)) == text_for("remark", Random(1))
    assert len(words(Random(1), 3).split()) == 3
    assert word(Random(1)).isalpha()


@pytest.mark.parametrize(
    ("least", "most", "sizes"),
    [
        (0, None, range(0, 29, 4)),
        (5, None, range(8, 37, 4)),
        (5, 8, [8]),
        (0, 3, [0]),
        (5, 7, [None]),
    ],
)
def test_base64_has_the_length_it_is_asked_for(
    least: int, most: int | None, sizes: Iterable[int | None]
) -> None:
    made = [base64_text(Random(seed), least, most) for seed in range(200)]

    assert {None if one is None else len(one) for one in made} == {*sizes}
