from __future__ import annotations

import msgspec
import pytest

from penstock.wire.json_text import all_utf8, one_line, one_line_each, why_not_json

DEEP = b"[" * 100_000 + b"]" * 100_000
PAYLOADS = [
    (b"null", b"null"),
    (b'{"a": 1.50}', b'{"a": 1.50}'),
    (b"12345678901234567890123", b"12345678901234567890123"),
    ('"é"'.encode(), '"é"'.encode()),
    (b'{"a":\r\n 1}', b'{"a":1}'),
    (b"[1,\n2]", b"[1,2]"),
    (b"hello", b'"hello"'),
    (b"", b'""'),
    (b'say "x"\r\n', b'"say \\"x\\"\\r\\n"'),
    (b"\xff\x00", '"\ufffd\\u0000"'.encode()),
    (b'"\xff"', '"\\"\ufffd\\""'.encode()),
    (b"1,2", b'"1,2"'),
]


@pytest.mark.parametrize(("payload", "text"), PAYLOADS)
def test_payload_becomes_json_on_one_line(payload: bytes, text: bytes) -> None:
    assert one_line(payload) == text
    assert one_line_each([payload]) == [text]
    msgspec.json.decode(text)


def test_a_batch_is_each_of_its_payloads() -> None:
    payloads = [payload for payload, _ in PAYLOADS]

    assert one_line_each(payloads) == [text for _, text in PAYLOADS]
    assert one_line_each([]) == []


def test_a_plain_batch_is_not_copied() -> None:
    payloads = [b"1", '"é"'.encode()]

    assert one_line_each(payloads) is payloads


def test_payloads_that_are_json_only_together_are_text() -> None:
    assert one_line_each([b"[1", b"2]", b"1,2"]) == [b'"[1"', b'"2]"', b'"1,2"']


def test_what_is_nested_too_deeply_is_text() -> None:
    assert one_line(DEEP) == b'"' + DEEP + b'"'


def test_a_character_cut_between_two_texts_is_in_neither() -> None:
    assert not all_utf8([b"\xc3", b"\xa9"])
    assert all_utf8(["é".encode(), b"a"])
    assert all_utf8([])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b" {} ", ""),
        (b"", "Input data was truncated"),
        (b"hello", "invalid character (byte 0)"),
        (b"[1,]", "trailing comma in array (byte 3)"),
        (b'"a\xff"', "not UTF-8 (byte 2)"),
        (DEEP, "nested too deeply"),
    ],
    ids=range(6),
)
def test_reason_says_what_keeps_it_from_being_json(data: bytes, reason: str) -> None:
    assert why_not_json(data) == reason
