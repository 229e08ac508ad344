from __future__ import annotations

import re
from random import Random

import pytest

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
    ],
)
def test_what_is_not_simple_is_refused(pattern: str) -> None:
    with pytest.raises(NotSimple):
        matching(pattern, Random(1))
