from __future__ import annotations

import pytest

from penstock.wire.control import (
    AGAIN,
    GREETING,
    OTHER,
    STARTED,
    WOKEN,
    ended,
    failed,
    missing,
    tweets,
)


def test_words_are_those_of_the_protocol() -> None:
    assert GREETING == b"Type `twitter` to start processing SSE (from Twitter API)\r\n"
    assert STARTED == b"[Command] run :twitter\r\n"
    assert OTHER == b"[Command] run :other\r\n"
    assert AGAIN == b"[Command] already running :twitter\r\n"
    assert WOKEN == b"[Command] the stream rested: it begins now\r\n"
    assert missing("Spark") == b"[Command] missing: Spark\r\n"
    assert failed("no") == b"[Command] error: no\r\n"
    assert ended("deleted") == b"[Command] end of the stream: deleted\r\n"


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (b'{"msg":"a\\r\\n b","op":"insert","after":{"text":"x"}}', b"a b"),
        (b'{"message":{"tweet":{"text":"h\xc3\xa9"}}}', "h\u00e9".encode()),
        (b'{"msg":null,"op":"delete"}', b'{"msg":null,"op":"delete"}'),
        (b'{"msg":{"a":1}}', b'{"msg":{"a":1}}'),
        (b"plain \xff", "plain \ufffd".encode()),
        (b"x" * 5000, b"x" * 1024),
        ("\u20ac".encode() * 2000, "\u20ac".encode() * 1024),
        (b'{"msg":"\\u001b[2J\\u0007  red\\u0000"}', b"[2J red"),
        (b"\x1b]0;title\x07", b"]0;title"),
        (b'{"x":' + b"[" * 20_000, b'{"x":' + b"[" * 1019),
        (b"", b""),
        (b'{"a":' + b"[" * 5000, b'{"a":' + b"[" * 1019),
    ],
)
def test_a_tweet_is_one_line(payload: bytes, text: bytes) -> None:
    assert tweets([payload], 3) == b"tweet: worker-3 " + text + b"\r\n"


def test_many_tweets_are_many_lines() -> None:
    assert tweets([b"a", b"b"], 1) == b"tweet: worker-1 a\r\ntweet: worker-1 b\r\n"
