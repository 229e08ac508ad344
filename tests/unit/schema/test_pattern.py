from __future__ import annotations

import re
from random import Random

import pytest

from penstock.errors import TooMuchWork
from penstock.schema.effort import Effort
from penstock.schema.pattern import NotSimple, matching

SIMPLE = [
    "",
    "abc",
    "^abc$",
    "^(ab|cd)+$",
    "^(?:ab|(?P<x>cd))?e*$",
    r"^\d{3}-\w{2,4}\.\s\S\D\W$",
    "^[a-fA-F0-9_.-]{8}$",
    "^[^a-z]+$",
    r"^[\d\-x]{2,}$",
    r"^\x41\u0042\n\/$",
    "^[]a]$",
    "^a{0}b+?c??$",
    "a|b|",
    "^x.y$",
]


@pytest.mark.parametrize("pattern", SIMPLE)
def test_what_is_made_matches(pattern: str) -> None:
    for seed in range(50):
        text = matching(pattern, Random(seed))
        assert re.search(pattern, text), f"seed {seed}: {text!r}"


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)b",
        "(?!a)",
        r"(a)\1",
        r"\bword\b",
        r"\p{L}",
        "a++",
        "a{x}",
        "a{5000}",
        "*a",
        "(a",
        "a)",
        "[a",
        "[[:alpha:]]",
        "[z-a]",
        r"[^\s\S]",
        "a^b",
        "a$b",
        "\\",
        r"\xzz",
        "(((a{900}){900}){900}){900}",
        "(" * 200 + "a" + ")" * 200,
        r"[\ud800-\udfff]",
        "a{3,2}",
    ],
)
def test_what_is_not_simple_is_refused(pattern: str) -> None:
    with pytest.raises(NotSimple):
        matching(pattern, Random(1))


@pytest.mark.parametrize(
    ("pattern", "least", "most"),
    [
        ("^[a-z]+$", 500, 500),
        ("^[a-z]{1,900}$", 0, 1),
        ("^(a|b{40})$", 40, 100),
        ("^a{2,5}(b|c{3,9})*$", 30, 40),
        ("^x?y?z*$", 7, 7),
        (r"^[\u0000-\uffff]{3}$", 3, 3),
    ],
)
def test_what_is_made_has_the_length_that_is_asked_for(
    pattern: str, least: int, most: int
) -> None:
    for seed in range(50):
        text = matching(pattern, Random(seed), least, most)
        assert re.search(pattern, text), f"seed {seed}: {text!r}"
        assert least <= len(text) <= most


def test_making_takes_steps() -> None:
    with pytest.raises(TooMuchWork):
        matching("^(a?){900}$", Random(1), effort=Effort(500))
