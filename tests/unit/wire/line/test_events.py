from __future__ import annotations

import pytest

from penstock.errors import RemoteProtocolError
from penstock.wire.line.events import decode_event, decode_events, decode_mixed

DEEP = b"[" * 100_000 + b"]" * 100_000
GOOD: list[tuple[bytes, tuple[str | None, int, bytes, str | None]]] = [
    (b"{}", (None, 0, b"null", None)),
    (b' {"id":"1","priority":3,"msg":"x"} \r', ("1", 3, b'"x"', None)),
    (b'{"id":9}', ("9", 0, b"null", None)),
    (b'{"id":-0}', ("0", 0, b"null", None)),
    (b'{"id":%b}' % (b"9" * 256), ("9" * 256, 0, b"null", None)),
    (b'{"id":"%b"}' % (b"x" * 256), ("x" * 256, 0, b"null", None)),
    (b'{"id":"two words"}', ("two words", 0, b"null", None)),
    ('{"id":"é","msg":"é"}'.encode(), ("é", 0, '"é"'.encode(), None)),
    (b'{"id":"1","id":"2"}', ("2", 0, b"null", None)),
    (b'{"priority":255,"msg":{"a" : 1.50 }}', (None, 255, b'{"a" : 1.50 }', None)),
    (b'{"msg":[1,\t2,\r3]}', (None, 0, b"[1,\t2,\r3]", None)),
    (b'{"msg":1}\x0b\x0c', (None, 0, b"1", None)),
    (b'{"topic":"t","id":"1"}', ("1", 0, b"null", None)),
    (b'{"b":1.50,"id":1,"a":{"x" : 2}}', ("1", 0, b"null", '{"b":1.50,"a":{"x" : 2}}')),
    (b'{"a":1,"b":2,"a":3}', (None, 0, b"null", '{"a":3,"b":2}')),
    (b'{"a":[1,\r2]}', (None, 0, b"null", '{"a":[1,2]}')),
    (b'{"a\\n":1,"priority":7,"msg":1e3}', (None, 7, b"1e3", '{"a\\n":1}')),
]
BAD: list[tuple[bytes, str]] = [
    (b"", "not valid JSON: Input data was truncated"),
    (b"hello", "not valid JSON: invalid character (byte 0)"),
    (b'{"id":"1"', "not valid JSON: Input data was truncated"),
    (b'{"msg":"\xff"}', "not valid JSON: not UTF-8 (byte 8)"),
    (b'{"\xff":1}', "not valid JSON: not UTF-8 (byte 2)"),
    (b'{"msg":%b}' % DEEP, "not valid JSON: nested too deeply"),
    (b"5", "event is not a JSON object"),
    (b"[]", "event is not a JSON object"),
    (b"null", "event is not a JSON object"),
    (b'{"priority":300}', "priority is 300: must be an integer from 0 to 255"),
    (b'{"priority":-1}', "priority is -1: must be an integer from 0 to 255"),
    (b'{"priority":1.0}', "priority is 1.0: must be an integer from 0 to 255"),
    (b'{"priority":true}', "priority is true: must be an integer from 0 to 255"),
    (b'{"priority":null}', "priority is null: must be an integer from 0 to 255"),
    (b'{"priority":"3"}', 'priority is "3": must be an integer from 0 to 255'),
    (
        b'{"priority":"%b"}' % (b"x" * 99),
        f'priority is "{"x" * 79}…: must be an integer from 0 to 255',
    ),
    (b'{"id":1.5}', "id is 1.5: must be a string or an integer"),
    (b'{"id":true}', "id is true: must be a string or an integer"),
    (b'{"id":null}', "id is null: must be a string or an integer"),
    (b'{"id":[1,\r2]}', "id is [1,\\r2]: must be a string or an integer"),
    (b'{"id":""}', "id is empty: must have 1 to 256 bytes"),
    (b'{"id":"%b"}' % (b"x" * 257), "id has 257 bytes: must have 1 to 256"),
    (f'{{"id":"{"é" * 129}"}}'.encode(), "id has 258 bytes: must have 1 to 256"),
    (b'{"id":%b}' % (b"9" * 257), "id has 257 bytes: must have 1 to 256"),
    (b'{"id":"a\\n"}', "id is 'a\\n': must be printable"),
    (b'{"id":" a"}', "id is ' a': must not begin or end with a space"),
    (b'{"id":"a "}', "id is 'a ': must not begin or end with a space"),
    (b'{"id":"","x":1}', "id is empty: must have 1 to 256 bytes"),
    (b'{"topic":"u"}', 'topic is "u": must be absent or t, as in the command'),
    (b'{"topic":5}', "topic is 5: must be absent or t, as in the command"),
]


@pytest.mark.parametrize(("data", "row"), GOOD)
def test_event_is_decoded(
    data: bytes, row: tuple[str | None, int, bytes, str | None]
) -> None:
    assert decode_event("t", data) == row


@pytest.mark.parametrize(("data", "text"), BAD, ids=range(len(BAD)))
def test_error_names_what_is_wrong_the_value_and_the_bound(
    data: bytes, text: str
) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        decode_event("t", data)

    assert (caught.value.protocol, caught.value.text) == ("line", text)


def test_integer_that_is_too_long_for_a_number_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="id is 999"):
        decode_event("t", b'{"id":%b}' % (b"9" * 5000))


@pytest.mark.parametrize("key", [b'"\\ud800"', b'"\\ud800abcdef"', b'"\\ud800\\u0041"'])
def test_half_a_surrogate_pair_is_refused(key: bytes) -> None:
    for data in (b"{%b:1}" % key, b'{"id":%b}' % key, b'{"topic":%b}' % key):
        with pytest.raises(RemoteProtocolError):
            decode_event("t", data)


def test_a_plain_batch_comes_out_in_columns() -> None:
    jsons = [b'{"id":"%d","priority":%d,"msg":[%d]}' % (i, i, i) for i in range(3)]

    decoded = decode_events("t", jsons)

    assert decoded == (
        ["0", "1", "2"],
        [0, 1, 2],
        [b"[0]", b"[1]", b"[2]"],
        None,
        [],
        {},
    )


def test_a_batch_is_each_of_its_events_alone() -> None:
    good = [data for data, _ in GOOD]
    ids, priorities, msgs, fields, errors, _ = decode_events("t", good)

    assert fields is not None
    assert [*zip(ids, priorities, msgs, fields, strict=True)] == [r for _, r in GOOD]
    assert errors == []


def test_bad_events_are_left_out_and_named_by_their_place() -> None:
    decoded = decode_events("t", [b'{"id":1}', b"x", b'{"id":2}', b'{"id":null}'])

    assert decoded.ids == ["1", "2"]
    assert len(decoded.priorities) == len(decoded.msgs) == 2
    assert decoded.fields is None
    assert [index for index, _ in decoded.errors] == [1, 3]


@pytest.mark.parametrize(
    ("jsons", "ids"),
    [
        ([], []),
        ([b"{}", b"{}"], [None, None]),
        ([b"{}", b'{"id":"a"}', b'{"id":7}'], [None, "a", "7"]),
        ([b'{"id":1}', b'{"id":2}'], ["1", "2"]),
        (['{"id":"é"}'.encode(), b'{"id":"a b"}'], ["é", "a b"]),
    ],
)
def test_ids_may_be_absent_text_or_numbers(
    jsons: list[bytes], ids: list[str | None]
) -> None:
    assert decode_events("t", jsons).ids == ids


def test_a_mixed_batch_knows_the_topic_of_each_event() -> None:
    event = b'{"topic":"b"}'

    decoded = decode_mixed(["a", "b", "c"], [event] * 3)

    assert [index for index, _ in decoded.errors] == [0, 2]
    assert decoded.ids == [None]
