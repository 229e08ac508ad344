from __future__ import annotations

import pytest

from penstock.errors import LocalProtocolError
from penstock.wire.sse import Event, Parser, numbered, render


def test_an_event_says_what_is_special_about_it() -> None:
    events = [Event(b"a"), Event(b"b", "7"), Event(b"c", type="news")]

    rendered = render(events)

    assert rendered == b"data: a\n\nid: 7\ndata: b\n\nevent: news\ndata: c\n\n"


def test_data_of_several_lines_are_several_fields() -> None:
    assert render([Event(b"a\nb\n")]) == b"data: a\ndata: b\ndata: \n\n"


def test_carriage_returns_end_lines() -> None:
    assert render([Event(b"a\rb\r\nc")]) == b"data: a\ndata: b\ndata: c\n\n"


def test_the_time_to_wait_stands_in_front() -> None:
    assert render([Event(b"a")], retry_ms=50) == b"retry: 50\n\ndata: a\n\n"


def test_many_events_are_numbered() -> None:
    rendered = numbered([b"{}", b"[]"], 41)

    assert rendered == (
        b"event: message\nid: 41\ndata: {}\n\nevent: message\nid: 42\ndata: []\n\n"
    )
    assert Parser(10).feed(rendered) == [
        Event(b"{}", "41", size=2),
        Event(b"[]", "42", size=2),
    ]


@pytest.mark.parametrize(
    "event",
    [Event(b"", "a\nb"), Event(b"", "a\0"), Event(b"", type="\r"), Event(b"", type="")],
)
def test_what_cannot_be_said_is_refused(event: Event) -> None:
    with pytest.raises(LocalProtocolError, match="must be text on one line"):
        render([event])
