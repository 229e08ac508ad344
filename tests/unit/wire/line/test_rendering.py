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


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        (
            b'{"msg":"text","op":"insert","after":{"a":1.50}}',
            b'"msg":"text","id":"1","op":"insert","after":{"a":1.50}',
        ),
        (b'{"op":"x","msg":null}', b'"msg":null,"id":"1","op":"x"'),
        (b'{\r\n"msg" : [1,\n2], "b":{\n}}', b'"msg":[1,2],"id":"1","b":{}'),
        (b'{"msg":1,"id":5,"topic":6,"priority":7,"z":8}', b'"msg":1,"id":"1","z":8'),
        (b'{"op":1}', b'"msg":{"op":1},"id":"1"'),
        (b'["msg"]', b'"msg":["msg"],"id":"1"'),
        (b"junk\n", b'"msg":"junk\\n","id":"1"'),
        (b'{"msg":"\xff"}', '"msg":"{\\"msg\\":\\"\ufffd\\"}","id":"1"'.encode()),
    ],
)
def test_a_payload_may_have_its_message_inside(payload: bytes, shown: bytes) -> None:
    lines = render_events("t", [2], [payload], ["1"], None, ["msg"])

    assert lines == [b'{"topic":"t","priority":2,%b}\r\n' % shown]


def test_only_payloads_that_say_so_are_taken_apart() -> None:
    payloads = [b'{"msg":1}', b'{"msg":2,"a":3}', b'{"text":4,"b":5}']
    fields = ['{"x":6}', None, '{"y":7}']

    lines = render_events(
        "t", [0] * 3, payloads, list("123"), fields, [None, "msg", "text"]
    )

    assert [line.split(b'"priority":0,')[1] for line in lines] == [
        b'"msg":{"msg":1},"id":"1","x":6}\r\n',
        b'"msg":2,"id":"2","a":3}\r\n',
        b'"msg":4,"id":"3","b":5,"y":7}\r\n',
    ]
