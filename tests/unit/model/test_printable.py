from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.printable import (
    has_controls,
    printable,
    printable_json,
    printable_lines,
)

CONTROLS = [
    chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Cc"
]
OVERRIDES = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


@pytest.mark.parametrize("one", CONTROLS, ids=ascii)
def test_no_control_character_is_left(one: str) -> None:
    assert has_controls(f"a{one}b")
    assert printable(f"a{one}b").isprintable()
    assert (one in printable_lines(f"a{one}b")) == (one in "\n\t")


@pytest.mark.parametrize("one", OVERRIDES, ids=ascii)
def test_text_cannot_turn_its_direction(one: str) -> None:
    assert one not in printable(f"a{one}b")
    assert not has_controls(one)


@pytest.mark.parametrize(
    "text", ["a/b c", "größe", "日本語　x", "a\xa0b", "🙂", "a\\b"]
)
def test_text_of_all_languages_stays_as_it_is(text: str) -> None:
    assert printable(text) == printable_lines(text) == printable_json(text) == text


@given(st.text())
def test_json_says_the_same(text: str) -> None:
    shown = printable_json(json.dumps(text, ensure_ascii=False))

    assert json.loads(shown) == text
    assert not has_controls(shown)


@given(st.text())
def test_what_was_escaped_is_not_escaped_again(text: str) -> None:
    once = printable(text)

    assert printable(once) == once
