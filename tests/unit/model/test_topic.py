from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import InvalidName
from penstock.model import MAX_TOPIC_NAME_BYTES, topic_name


@pytest.mark.parametrize(
    "text", ["a", "a/b/c", "../..", "é" * 512, "x" * MAX_TOPIC_NAME_BYTES, " ", "日本"]
)
def test_text_that_utf8_can_carry_is_a_name(text: str) -> None:
    assert topic_name(text) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("a\0b", "contains a NUL character"),
        ("\ud800", "is not valid Unicode text"),
        ("x" * 1025, "has 1025 bytes, limit 1024"),
        ("é" * 513, "has 1026 bytes, limit 1024"),
    ],
)
def test_other_text_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(InvalidName) as caught:
        topic_name(text)

    assert caught.value.reason == reason


def test_what_is_no_text_is_refused_as_such() -> None:
    number: Any = 5

    with pytest.raises(InvalidName, match="no text but of int"):
        topic_name(number)
