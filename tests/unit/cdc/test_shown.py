from __future__ import annotations

import msgspec
import pytest

from penstock.cdc.shown import MAX_MESSAGE_BYTES, NOTHING, Shown, shown_document


def message_of(path: str, document: bytes) -> bytes:
    shown = Shown(message=tuple(path.split(".")))
    (found,) = shown.messages([msgspec.Raw(document)])
    return bytes(found)


@pytest.mark.parametrize(
    ("path", "document", "message"),
    [
        ("text", b'{"a":1,"text":"h\\u00e9"}', b'"h\\u00e9"'),
        ("text", b'{"text":{"any": [1.50]}}', b'{"any": [1.50]}'),
        ("text", b'{"text":null}', b"null"),
        ("text", b'{"other":1}', b"null"),
        ("a.b", b'{"a":{"b":1},"a.b":2}', b"1"),
        ("a.b.c", b'{"a":{"b":{"x":0,"c":true}}}', b"true"),
        ("a.b", b'{"a":[{"b":1}]}', b"null"),
        ("a.b", b'{"a":"b"}', b"null"),
        ("a", b'"text"', b"null"),
        ("a", b'["a"]', b"null"),
        ("a", b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}", b"null"),
        ("a", b'{"a":"%b"}' % (b"x" * (MAX_MESSAGE_BYTES - 2)), None),
        ("a", b'{"a":"%b"}' % (b"x" * (MAX_MESSAGE_BYTES - 1)), b"null"),
    ],
)
def test_a_message_is_a_field_of_the_document_as_it_is_there(
    path: str, document: bytes, message: bytes | None
) -> None:
    assert message_of(path, document) == (
        document[5:-1] if message is None else message
    )


@pytest.mark.parametrize(
    ("score", "level"),
    [
        (b"0", 0),
        (b"0.0999", 0),
        (b"0.1", 1),
        (b"9", 1),
        (b"1e1", 2),
        (b"123456789012345678901234567890", 2),
        (b"-5", 0),
        (b"null", 0),
        (b'"10"', 0),
        (b"true", 0),
        (b'{"$numberDouble":"NaN"}', 0),
        (b"1e999", 0),
    ],
)
def test_a_priority_counts_the_thresholds_that_were_reached(
    score: bytes, level: int
) -> None:
    shown = Shown(score=("data", "score"), thresholds=(0.1, 10))

    documents = [b'{"data":{"score":%b},"text":"x"}' % score, b"{}"]

    assert shown.priorities(map(msgspec.Raw, documents)) == [level, 0]


def test_without_a_score_there_is_no_priority() -> None:
    assert Shown(message=("a",)).priorities([NOTHING]) is None


@pytest.mark.parametrize("after", [b'{"":0}', b'{"text":"new"}'])
def test_of_a_document_that_is_gone_it_is_as_it_was(after: bytes) -> None:
    before = msgspec.Raw(b'{"text":"old"}')

    assert bytes(shown_document(before, msgspec.Raw(after))) == after
    assert shown_document(before, NOTHING) is before
    assert shown_document(before, msgspec.Raw(b"null")) is before
    assert shown_document(NOTHING, NOTHING) is NOTHING
