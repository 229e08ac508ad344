from __future__ import annotations

import pytest

from penstock.wire.line import replies


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (replies.GREETING, "Successfully connected to message_broker"),
        (replies.subscribed("é"), "successfully subscribed to topic é"),
        (replies.unsubscribed("t"), "successfully unsubscribe from topic t"),
        (replies.ACKNOWLEDGED, "acknowledged from current session"),
        (replies.acknowledged_from_logs("7"), "acknowledged from logs ev_id=7"),
        (replies.no_event("7"), "no_event_error: 7"),
        (replies.not_a_subscriber("t"), "error: not a topic t subscriber"),
        (replies.NO_MESSAGE, "no available message"),
        (replies.no_topic("t"), "error: topic t does not exist"),
        (replies.subscriber("bob"), "subscriber bob"),
        (replies.CONFIRM_ON, "confirm on"),
        (replies.CONFIRM_OFF, "confirm off"),
        (replies.window(10), "window 10"),
        (replies.error("x is 5"), "error: x is 5"),
        (replies.error("two\r\nlines"), "error: two  lines"),
        (replies.line_too_long(1048576), "error: line exceeds 1048576 bytes"),
    ],
)
def test_reply_is_word_for_word_with_its_line_end(reply: bytes, text: str) -> None:
    assert reply == f"{text}\r\n".encode()


def test_confirmations_count_offsets_from_the_first() -> None:
    assert replies.published("t", ["a", "é"], 9) == (
        "published t a 9\r\npublished t é 10\r\n".encode()
    )
    assert replies.published("t", [], 9) == b""
