from __future__ import annotations

import msgspec
import pytest

from penstock.cli import letter_text
from penstock.cli.letter_text import (
    letter_lines,
    letter_table,
    payload_lines,
    ranges,
    short,
    text_lines,
    try_lines,
)
from penstock.desk.views.audit import AuditRow
from penstock.desk.views.events import EventView, TryRow
from penstock.desk.views.letters import LetterView

EVENT = EventView(
    offset=7,
    id="id-7",
    timestamp=1000,
    priority=4,
    key=b"k",
    headers={"lang": "de"},
    parent="id-1",
    producer="shop",
    payload=b'{"a":[1,2]}',
)
LETTER = LetterView(
    number=3,
    status="open",
    at_ms=2000,
    gateway="delivery",
    reason="KeyError: 'a'",
    kind="KeyError",
    topic="orders",
    offset=7,
    id="id-7",
    subscriber="billing",
    tries=1,
    amended=False,
    raw=None,
    raw_bytes=0,
    pattern="KeyError: …",
    errors=["KeyError: 'a'"],
    failures=[],
    event=EVENT,
    event_from="log",
    history=[],
    history_cut=False,
)


def lines(**changes: object) -> list[str]:
    return list(letter_lines(msgspec.structs.replace(LETTER, **changes)))


def test_an_event_is_shown_with_all_it_has() -> None:
    found = lines()

    for fact in (
        "event       offset 7 of orders",
        "published   1970-01-01T00:00:01.000Z",
        "key         k",
        "priority    4",
        "parent      id-1",
        "producer    shop",
        "header      lang: de",
    ):
        assert fact in found
    assert found[found.index("payload:") + 1 :][0] == "  {"


def test_a_letter_says_if_it_has_the_only_copy() -> None:
    assert any(line.startswith("copy ") for line in lines(event_from="letter"))
    amended = lines(event_from="letter", amended=True)
    assert "event       offset 7 of orders, amended" in amended
    assert not any(line.startswith("copy ") for line in amended)
    assert lines(event=None)[-1] == "payload: gone"


def test_raw_input_is_shown_whole() -> None:
    found = lines(event=None, topic=None, offset=None, subscriber=None, raw=b"x\x00y")

    assert found[-2:] == ["raw input:", "  x\\x00y"]
    assert "topic       orders" in lines(event=None, offset=None, raw=b"x")


def test_the_history_of_a_letter_is_shown() -> None:
    entry = AuditRow(
        entry=0,
        at_ms=3000,
        by="anna",
        action="edited",
        numbers=[3],
        subscriber="billing",
        topic="orders",
        reason="typo",
        old=b"a",
        new=b"b",
        cut=False,
    )

    assert lines(history=[entry])[-3:] == [
        "edited by anna at 1970-01-01T00:00:03.000Z: typo",
        "the payload was edited to:",
        "  b",
    ]
    assert "dead-letters audit" in lines(history_cut=True)[-1]


@pytest.mark.parametrize(
    ("payload", "found"),
    [
        (b'{"a":1}', ["  {", '    "a": 1', "  }"]),
        (b"one\ntwo\x1b[0m", ["  one", "  two\\x1b[0m"]),
        (b"\xff\x00", ["  0xff00"]),
        (b"", []),
    ],
)
def test_a_payload_is_shown_as_what_it_is(payload: bytes, found: list[str]) -> None:
    assert list(payload_lines(payload)) == found


def test_a_long_text_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letter_text, "MAX_LINES", 2)

    assert list(text_lines("a\nb\nc\nd")) == [
        "  a",
        "  b",
        "  … 2 more lines; --json has all of it",
    ]


def test_a_try_says_when_and_how_long() -> None:
    one = TryRow(
        tries=2, at_ms=1000, duration_s=0.1234, kind="E", message="m", traceback="T"
    )
    old = TryRow(
        tries=1, at_ms=0, duration_s=None, kind="Refused", message="m", traceback=""
    )

    assert list(try_lines(one)) == [
        "try 2 at 1970-01-01T00:00:01.000Z after 0.123 s: E: m",
        "  T",
    ]
    assert list(try_lines(old)) == ["try 1: m"]


def test_a_long_reason_is_shortened_in_a_table() -> None:
    assert short("r" * 100) == "r" * 59 + "…"
    assert short("a\nb") == "a\\nb"
    row = msgspec.structs.replace(LETTER, reason="r" * 100)
    assert letter_table([row])[1].endswith(" " + "r" * 59 + "…")


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([4], "4"), ([3, 1, 2], "1-3"), ([0, 1, 5, 7, 8], "0-1, 5, 7-8")],
)
def test_neighbours_are_shown_together(numbers: list[int], text: str) -> None:
    assert ranges(numbers) == text
