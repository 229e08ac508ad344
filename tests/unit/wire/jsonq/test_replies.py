from __future__ import annotations

import pytest

from penstock.wire.jsonq import replies


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (replies.PLEASE_LOGIN, "Please login!"),
        (replies.LOGGED_IN, "Succesfully logged in!"),
        (replies.LOGIN_FAILED, 'ERROR "Unknown login error"'),
        (
            replies.NAME_TAKEN,
            'ERROR "A connection for this username already exists"',
        ),
        (replies.error("x"), 'ERROR "x"'),
        (replies.OK, "OK"),
        (replies.INVALID_JSON, "INVALID JSON"),
        (replies.UNKNOWN_COMMAND, "UNKNOWN COMMAND"),
        (replies.UNKNOWN_MESSAGE, "UNKNOWN MESSAGE"),
        (
            replies.pub("é", 7, b'{"a" : 1.50}'),
            '{"msg":{"a" : 1.50},"msgId":7,"topic":"é","type":"PUB"}',
        ),
        (
            replies.pub('"', 7, b"not json\n"),
            '{"msg":"not json\\n","msgId":7,"topic":"\\"","type":"PUB"}',
        ),
        (replies.pubrel(7), '{"msgId":7,"type":"PUBREL"}'),
        (replies.pubrec(7), '{"msgId":7,"type":"PUBREC"}'),
        (replies.pubcomp(7), '{"msgId":7,"type":"PUBCOMP"}'),
    ],
)
def test_reply_is_word_for_word_with_its_line_end(reply: bytes, text: str) -> None:
    assert reply == f"{text}\r\n".encode()
