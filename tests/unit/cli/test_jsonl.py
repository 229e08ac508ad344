"""One event, one line, and everything can be told from it again."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.cli.jsonl import line_of
from penstock.model.event import Event

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=5,
)
documents = st.builds(
    lambda value, indent: json.dumps(value, indent=indent).encode(),
    values,
    st.sampled_from([None, 0, 2]),
)


@given(st.binary(max_size=20) | texts.map(str.encode) | documents)
def test_every_payload_can_be_told_from_its_line(payload: bytes) -> None:
    line = line_of(event(payload))

    said = json.loads(line)
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    match said["payload_encoding"]:
        case "base64":
            assert base64.b64decode(said["payload"]) == payload
        case "text":
            assert said["payload"].encode() == payload
        case "json":
            assert said["payload"] == json.loads(payload)


@pytest.mark.parametrize(
    ("payload", "value", "encoding"),
    [
        (b'{"a": [1, 2.50]}', b'{"a": [1, 2.50]}', "json"),
        (b'{\r\n "a":\t1\n}', b'{"a":1}', "json"),
        (b"7", b"7", "json"),
        (b'"quoted"', b'"quoted"', "json"),
        (b"", b'""', "text"),
        (b"NaN", b'"NaN"', "text"),
        (b"hello\nworld", b'"hello\\nworld"', "text"),
        (b"{broken", b'"{broken"', "text"),
        (b'"\xff"', b'"Iv8i"', "base64"),
    ],
)
def test_payloads_are_embedded_as_what_they_are(
    payload: bytes, value: bytes, encoding: str
) -> None:
    line = line_of(event(payload))

    assert b'"payload":' + value + b"," in line
    assert json.loads(line)["payload_encoding"] == encoding


def test_json_too_deep_to_look_into_is_text() -> None:
    payload = b"[" * 100_000 + b"]" * 100_000

    assert json.loads(line_of(event(payload)))["payload_encoding"] == "text"


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (None, (None, None)),
        (b"", ("", "text")),
        (b"k1", ("k1", "text")),
        (b"\xff", ("/w==", "base64")),
    ],
)
def test_keys_are_text_or_base64(key: bytes | None, said: tuple) -> None:
    line = json.loads(line_of(event(b"", key=key)))

    assert (line["key"], line["key_encoding"]) == said


def test_a_line_says_everything_in_order() -> None:
    full = Event(
        topic="t",
        offset=7,
        id="an id",
        timestamp_ms=5,
        payload=b"1",
        key=b"k",
        priority=3,
        headers={"a": "b"},
        parent="p",
        producer="q",
        expires_ms=9,
    )

    assert line_of(full) == (
        b'{"topic":"t","offset":7,"id":"an id","timestamp":5,"priority":3,"key":"k",'
        b'"key_encoding":"text","headers":{"a":"b"},"parent":"p","producer":"q",'
        b'"expires":9,"not_before":null,"payload":1,"payload_encoding":"json"}\n'
    )


def event(payload: bytes, key: bytes | None = None) -> Event:
    return Event(topic="t", offset=0, id="i", timestamp_ms=0, payload=payload, key=key)
