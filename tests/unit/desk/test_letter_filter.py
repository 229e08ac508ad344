from __future__ import annotations

import pytest

from penstock.desk.letter_book import LetterHead
from penstock.desk.views.letters import PATTERN_CHARACTERS, Filter, alike, pattern_of

LETTER = LetterHead(
    gateway="json consumer",
    reason="ValueError: no price for 'tea' in order 4711",
    at_ms=1000,
    topic="orders",
    subscriber="billing",
    kind="ValueError",
)


@pytest.mark.parametrize(
    ("filter", "takes"),
    [
        (Filter(), True),
        (Filter(subscriber="billing", topic="orders"), True),
        (Filter(subscriber="shipping"), False),
        (Filter(topic="order"), False),
        (Filter(gateway="json"), True),
        (Filter(gateway="consumer"), False),
        (Filter(error="ValueError"), True),
        (Filter(error="Value"), False),
        (Filter(reason="NO PRICE"), True),
        (Filter(reason="no prize"), False),
        (Filter(since_ms=1000), True),
        (Filter(since_ms=1001), False),
        (Filter(until_ms=1001), True),
        (Filter(until_ms=1000), False),
        (Filter(pattern="ValueError: no price for … in order …"), True),
        (Filter(pattern="ValueError"), False),
    ],
)
def test_a_filter_takes_what_fits(filter: Filter, takes: bool) -> None:
    assert filter.takes(LETTER) is takes


@pytest.mark.parametrize(
    ("reason", "pattern"),
    [
        ("", ""),
        ("plain text", "plain text"),
        ("order 17 is odd", "order … is odd"),
        ("took 1.25 s at 12:30:01", "took … s at …"),
        ("no 'it''s' and \"that\"", "no …… and …"),
        ("user 0190f6a1-7c3b-7000-8000-0123456789ab", "user …"),
        ("hash deadbeef01 or facade", "hash … or facade"),
        ("first line 1\nsecond", "first line …"),
        ("don't", "don't"),
        ("x" * 999, "x" * PATTERN_CHARACTERS),
    ],
)
def test_a_pattern_leaves_out_what_differs(reason: str, pattern: str) -> None:
    assert pattern_of(reason) == pattern


def test_letters_that_are_alike_differ_in_details_only() -> None:
    like = alike(LETTER)

    assert like.takes(LETTER)
    assert like.takes(_with(reason="ValueError: no price for 'rum' in order 1"))
    assert not like.takes(_with(reason="ValueError: no order"))
    assert not like.takes(_with(kind="KeyError"))
    assert not like.takes(_with(kind=None))
    assert alike(_with(kind=None)).takes(_with(kind=None))
    assert not alike(_with(kind=None)).takes(LETTER)


def _with(**changes: str | None) -> LetterHead:
    fields = {name: getattr(LETTER, name) for name in LETTER.__struct_fields__}
    return LetterHead(**{**fields, **changes})
