from __future__ import annotations

import pytest

from penstock.errors import LocalProtocolError
from penstock.wire.sse import ServerSentEvent, SseParser, numbered, render


def test_an_event_says_what_is_special_about_it() -> None:
    events = [
        ServerSentEvent(b"a"),
        ServerSentEvent(b"b", "7"),
        ServerSentEvent(b"c", type="news"),
    ]

    rendered = render(events)

    assert rendered == b"data: a\n\nid: 7\ndata: b\n\nevent: news\ndata: c\n\n"


def test_data_of_several_lines_are_several_fields() -> None:
    assert render([ServerSentEvent(b"a\nb\n")]) == b"data: a\ndata: b\ndata: \n\n"


def test_carriage_returns_end_lines() -> None:
    assert render([ServerSentEvent(b"a\rb\r\nc")]) == b"data: a\ndata: b\ndata: c\n\n"


def test_the_time_to_wait_stands_in_front() -> None:
    assert render([ServerSentEvent(b"a")], retry_ms=50) == b"retry: 50\n\ndata: a\n\n"


def test_many_events_are_numbered() -> None:
    rendered = numbered([b"{}", b"[]"], 41)

    assert rendered == (
        b"event: message\nid: 41\ndata: {}\n\nevent: message\nid: 42\ndata: []\n\n"
    )
    assert SseParser(10).feed(rendered) == [
        ServerSentEvent(b"{}", "41", size=2),
        ServerSentEvent(b"[]", "42", size=2),
    ]


@pytest.mark.parametrize(
    "event",
    [
        ServerSentEvent(b"", "a\nb"),
        ServerSentEvent(b"", "a\0"),
        ServerSentEvent(b"", type="\r"),
        ServerSentEvent(b"", type=""),
    ],
)
def test_what_cannot_be_said_is_refused(event: ServerSentEvent) -> None:
    with pytest.raises(LocalProtocolError, match="must be text on one line"):
        render([event])
