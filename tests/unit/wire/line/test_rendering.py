from __future__ import annotations

import pytest

from penstock.wire.line.rendering import render_events


def test_line_has_its_keys_in_the_order_of_the_protocol() -> None:
    lines = render_events("tweets", [3, 0], [b'"tweet 1"', b"null"], ["1", "2"])

    assert lines == [
        b'{"topic":"tweets","priority":3,"msg":"tweet 1","id":"1"}\r\n',
        b'{"topic":"tweets","priority":0,"msg":null,"id":"2"}\r\n',
    ]


def test_nothing_gives_no_lines() -> None:
    assert render_events("t", [], [], []) == []


@pytest.mark.parametrize(
    ("id", "shown"),
    [
        ("", '""'),
        ("a b", '"a b"'),
        ("é", '"é"'),
        ('a"b', '"a\\"b"'),
        ("a\\b", '"a\\\\b"'),
        ("a\r\nb", '"a\\r\\nb"'),
        ("\u2028", '"\u2028"'),
    ],
)
def test_any_id_is_a_json_string(id: str, shown: str) -> None:
    lines = render_events("t", [0, 0], [b"1", b"2"], [id, "x"])

    assert lines == [
        f'{{"topic":"t","priority":0,"msg":1,"id":{shown}}}\r\n'.encode(),
        b'{"topic":"t","priority":0,"msg":2,"id":"x"}\r\n',
    ]


def test_topic_and_payload_that_are_not_plain_are_escaped() -> None:
    assert render_events('a"b', [255], [b"\xff\n"], ["1"]) == [
        '{"topic":"a\\"b","priority":255,"msg":"\ufffd\\n","id":"1"}\r\n'.encode()
    ]


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        (None, b""),
        ("{}", b""),
        ('{"b":1.50,"a":{"x" : 2}}', b',"b":1.50,"a":{"x" : 2}'),
        ('{"id":5,"msg":6,"topic":7,"priority":8,"z":9}', b',"z":9'),
        ('{"a":[1,\r\n2]}', b',"a":[1,2]'),
        ('{"a\\"":1}', b',"a\\"":1'),
        ("[1]", b""),
        ("junk", b""),
    ],
)
def test_other_fields_follow_behind_the_id(fields: str | None, shown: bytes) -> None:
    lines = render_events("t", [0], [b"1"], ["1"], [fields])

    assert lines == [b'{"topic":"t","priority":0,"msg":1,"id":"1"%b}\r\n' % shown]


def test_columns_of_different_lengths_are_not_accepted() -> None:
    with pytest.raises(ValueError, match="zip"):
        render_events("t", [0], [b"1", b"2"], ["1", "2"])
