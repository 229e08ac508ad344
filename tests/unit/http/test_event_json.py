from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.delivery.owed import Portion
from penstock.delivery.pages import Page
from penstock.http.event_json import (
    EventJson,
    events_json,
    key_json,
    payload_json,
    portion_json,
    with_tries,
)
from penstock.log import Batch, Columns, frame_of

ID_BASE = bytes(16)


def batch_of(columns: Columns, topic: str = "t") -> Batch:
    return Batch.of(topic, frame_of(columns, 7, ID_BASE))


def shown(columns: Columns, cut_bytes: int | None = None) -> list[Any]:
    return [json.loads(one) for one in events_json(batch_of(columns), cut_bytes)]


def test_an_event_has_everything_in_the_order_of_the_page() -> None:
    columns = Columns(
        [b'{"a":1.50}'],
        5,
        ids=["x"],
        keys=[b"k"],
        priorities=[3],
        headers=[{"type": "order"}],
        parents=["p"],
        producer="shop",
    )

    (text,) = events_json(batch_of(columns))

    assert text == (
        b'{"topic":"t","offset":7,"id":"x","timestamp":5,"priority":3,"key":"k",'
        b'"headers":{"type":"order"},"parent":"p","producer":"shop",'
        b'"encoding":"json","payload":{"a":1.50},"bytes":10}'
    )


def test_what_an_event_does_not_have_is_null_or_empty() -> None:
    (event,) = shown(Columns([b"1"], 5))

    assert event["id"] == "00000000-0000-0000-0000-000000000000"
    assert (event["key"], event["parent"], event["producer"]) == (None, None, None)
    assert (event["headers"], event["priority"]) == ({}, 0)
    assert "cut" not in event and "key_encoding" not in event


PAYLOADS = [
    (b'{"a": [1, 2]}', "json", {"a": [1, 2]}),
    (b"null", "json", None),
    (b'{"a":\r\n 1}\n', "json", {"a": 1}),
    (b"", "text", ""),
    (b"{not json", "text", "{not json"),
    (b"NaN", "text", "NaN"),
    ("Straße\n".encode(), "text", "Straße\n"),
    (b"\xff\x00", "base64", "/wA="),
    (b'"\xff"', "base64", "Iv8i"),
    (b"[" * 100_000, "text", "[" * 100_000),
]


@pytest.mark.parametrize(("payload", "encoding", "value"), PAYLOADS)
def test_a_payload_is_json_or_text_or_base64(
    payload: bytes, encoding: str, value: object
) -> None:
    (event,) = shown(Columns([payload], 5))

    assert (event["encoding"], event["payload"]) == (encoding, value)
    assert event["bytes"] == len(payload)


def test_one_odd_payload_does_not_change_the_others() -> None:
    events = shown(Columns([payload for payload, _, _ in PAYLOADS], 5))

    assert [one["encoding"] for one in events] == [one for _, one, _ in PAYLOADS]
    assert [one["payload"] for one in events] == [one for _, _, one in PAYLOADS]


@given(st.lists(st.binary(max_size=40), min_size=1))
def test_every_event_is_one_line_of_json(payloads: list[bytes]) -> None:
    for text, payload in zip(
        events_json(batch_of(Columns(payloads, 5))), payloads, strict=True
    ):
        assert b"\n" not in text and b"\r" not in text
        assert json.loads(text)["bytes"] == len(payload)


@pytest.mark.slow
@given(st.recursive(st.none() | st.integers() | st.text(), st.lists))
def test_json_comes_back_as_it_is(value: object) -> None:
    (event,) = shown(Columns([json.dumps(value, indent=2).encode()], 5))

    assert (event["encoding"], event["payload"]) == ("json", value)


def test_a_long_payload_is_cut_where_a_list_wants_that() -> None:
    long = json.dumps("ä" * 100, ensure_ascii=False).encode()

    (whole,) = shown(Columns([long], 5))
    (cut,) = shown(Columns([long], 5), cut_bytes=10)

    assert (whole["encoding"], "cut" in whole) == ("json", False)
    assert (cut["encoding"], cut["cut"], cut["bytes"]) == ("text", True, len(long))
    assert cut["payload"] == '"ää' + "ä" * 2


def test_long_bytes_are_cut_as_base64() -> None:
    assert payload_json(b"\xff" * 30, 3) == ("base64", "////", True)


def test_a_key_that_is_no_text_is_base64() -> None:
    (event,) = shown(Columns([b"1"], 5, keys=[b"\xff"]))

    assert (event["key"], event["key_encoding"]) == ("/w==", "base64")
    assert key_json(b"caf\xc3\xa9") == ("café", msgspec.UNSET)


def test_a_delivery_says_which_try_it_is() -> None:
    assert with_tries([b'{"a":1}'], 3) == [b'{"a":1,"tries":3}']


def test_a_page_is_rendered_once_for_everybody() -> None:
    page = Page(batch_of(Columns([b"%d" % n for n in range(10)], 5)))

    whole = portion_json(Portion(page, 0, 10, 1))
    part = portion_json(Portion(page, 2, 4, 1))

    assert portion_json(Portion(page, 0, 10, 1)) is whole
    assert part == whole[2:4]


def test_a_few_events_do_not_render_the_whole_page() -> None:
    page = Page(batch_of(Columns([b"%d" % n for n in range(10)], 5)))

    (event,) = portion_json(Portion(page, 9, 10, 1))

    assert json.loads(event)["offset"] == 16
    assert page.rendered == {}


def test_the_type_says_what_is_sent() -> None:
    (text,) = events_json(batch_of(Columns([b"[1]"], 5, keys=[b"\xff"])))

    event = msgspec.json.decode(text)

    assert set(event) <= set(EventJson.__struct_fields__)
