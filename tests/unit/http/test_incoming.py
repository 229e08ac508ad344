from __future__ import annotations

import pytest

from penstock.errors import BadRequest, InvalidArgument, InvalidBatch
from penstock.http.incoming import (
    MAX_ARRAY,
    Incoming,
    arrived,
    arrived_lines,
    read_array,
    read_one,
)


def test_a_payload_is_kept_as_it_is_written() -> None:
    new = arrived([read_one(b'{"payload": {"a": 1.50, "b" : [ ] }}')], 5, None)

    assert new.columns.payloads == [b'{"a": 1.50, "b" : [ ] }']
    assert new.columns.ids is None and new.dedup_ids is None


def test_everything_that_can_be_said_of_an_event() -> None:
    row = read_one(
        b'{"payload":1,"key":"k","headers":{"type":"x"},"priority":9,"id":"i",'
        b'"parent":"p","dedup_id":"d"}'
    )

    new = arrived([row, Incoming(text="plain")], 5, "shop")

    columns = new.columns
    assert columns.payloads == [b"1", b"plain"]
    assert columns.keys == [b"k", None]
    assert columns.headers == [{"type": "x"}, {}]
    assert columns.priorities == [9, 0]
    assert columns.ids == ["i", None]
    assert columns.parents == ["p", None]
    assert columns.producers == ["shop", "shop"]
    assert new.dedup_ids == ["d", None]


PAYLOADS = [
    (b'{"text":"gr\xc3\xbc\xc3\x9fe"}', "grüße".encode()),
    (b'{"text":""}', b""),
    (b'{"base64":"/wA="}', b"\xff\x00"),
    (b'{"payload":null}', b"null"),
    (b'{"payload":""}', b'""'),
]


@pytest.mark.parametrize(("data", "payload"), PAYLOADS)
def test_a_payload_may_be_json_text_or_bytes(data: bytes, payload: bytes) -> None:
    new = arrived([read_one(data)], 5, None)

    assert new.columns.payloads == [payload]


def test_a_key_may_be_any_bytes() -> None:
    row = read_one(b'{"payload":1,"key":"/w==","key_encoding":"base64"}')

    assert arrived([row], 5, None).columns.keys == [b"\xff"]


REFUSED = [
    (b"{}", InvalidBatch, "exactly one of payload, text and base64"),
    (b'{"payload":1,"text":"x"}', InvalidBatch, "given in 2 ways"),
    (b'{"text":"x","base64":"eA=="}', InvalidBatch, "given in 2 ways"),
    (b'{"base64":"!"}', InvalidBatch, "base64"),
    (b'{"payload":1,"key":"!","key_encoding":"base64"}', InvalidBatch, "key"),
    (b'{"payload":1,"key":"\\ud800"}', (InvalidBatch, BadRequest), ""),
    (b'{"payload":1,"priority":256}', InvalidArgument, "255"),
    (b'{"payload":1,"priority":"high"}', InvalidArgument, "priority"),
    (b'{"payload":1,"colour":"red"}', InvalidArgument, "no field `colour`"),
    (b'{"payload":1,"id":""}', InvalidBatch, "id"),
    (b'{"payload":1,"id":"a\\nb"}', InvalidBatch, "id"),
    (b'{"payload":1,"headers":{"a":1}}', InvalidArgument, "headers"),
    (b"[1]", InvalidArgument, "object"),
    (b'{"payload":', BadRequest, "not valid JSON"),
    (b'{"payload":"\xff"}', BadRequest, "UTF-8"),
    (b"[" * 100_000, (BadRequest, InvalidArgument), ""),
]


@pytest.mark.parametrize(("data", "kind", "text"), REFUSED)
def test_what_makes_no_sense_is_refused_by_name(
    data: bytes, kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind) as caught:
        arrived([read_one(data)], 5, None)

    assert text in str(caught.value)


def test_an_array_is_read_as_a_whole() -> None:
    assert len(read_array(b'[{"payload":1},{"text":"x"}]')) == 2
    with pytest.raises(InvalidArgument, match=r"\[1\]\.priority"):
        read_array(b'[{"payload":1},{"payload":1,"priority":-1}]')


def test_plain_lines_are_columns_at_once() -> None:
    new = arrived_lines(b'{"payload":1}\n{"payload":{"a": 2}}\r\n', 5, "shop")

    assert new is not None
    assert new.columns.payloads == [b"1", b'{"a": 2}']
    assert new.columns.producers == ["shop", "shop"]


def test_lines_that_say_more_are_columns_too() -> None:
    new = arrived_lines(b'{"payload":1}\n{"text":"x","dedup_id":"d"}\n', 5, None)

    assert new is not None
    assert new.columns.payloads == [b"1", b"x"]
    assert new.dedup_ids == [None, "d"]


NOT_ALL_GOOD = [
    b'{"payload":1}\n{"payload":}\n',
    b'{"payload":1}\n{}\n',
    b'{"payload":1}\n{"payload":"\xff"}\n',
    b'{"payload":1,"id":" x"}\n',
    b"1\n",
]


@pytest.mark.parametrize("block", NOT_ALL_GOOD)
def test_lines_of_which_one_is_bad_need_a_closer_look(block: bytes) -> None:
    assert arrived_lines(block, 5, None) is None


@pytest.mark.parametrize("one", [b"{}", b'{"payload":{"a":{}}}'])
def test_an_array_is_not_read_to_its_end_when_it_is_too_long(one: bytes) -> None:
    wrong = b'{"text": 1}'  # nobody gets as far
    body = b"[" + b",".join([one] * (MAX_ARRAY + 1)) + b"," + wrong + b"]"

    with pytest.raises(InvalidArgument, match=f"length <= {MAX_ARRAY}"):
        read_array(body)


def test_an_array_may_have_more_objects_than_events() -> None:
    body = b'[{"payload":[' + b"{}," * MAX_ARRAY + b"{}]}]"

    for _ in range(2):
        assert len(read_array(body)) == 1
