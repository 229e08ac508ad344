"""Server-sent events: cut anywhere, any bytes at all, and back again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.wire.sse import (
    MAX_FIELD_BYTES,
    ServerSentEvent,
    SseParser,
    numbered,
    render,
)

LIMIT = 20
words = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"))
pieces = [
    *(b"data", b"id", b"event", b"retry", b":", b" ", b"\n", b"\r", b"\r\n", b"\n\n"),
    *(b"\xef\xbb\xbf", b"\xef", b"\0", b"\xff", b"7", b"data: {}\n\n", b"id: 3\n"),
    *(b"id: 12\ndata: ", b"event: message\nid: 4\ndata: {}\n\n", b"event: other\n"),
    *(b"x" * LIMIT, b"data: " + b"y" * (LIMIT + 1), b"z" * (MAX_FIELD_BYTES + LIMIT)),
]
streams = st.lists(st.sampled_from(pieces)).map(b"".join)
events = st.builds(
    ServerSentEvent,
    st.binary().map(lambda data: data.replace(b"\r", b"")),
    words.filter(bool),
    words.filter(bool),
)


@st.composite
def cut(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A stream, and the same cut anywhere."""
    stream = draw(streams)
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)))))
    bounds = zip([0, *cuts], [*cuts, len(stream)], strict=True)
    return stream, [stream[start:end] for start, end in bounds]


def by_the_book(stream: bytes) -> tuple[list[ServerSentEvent], str]:
    """The rules of the standard, line by line, with the limits of a parser.

    The events, and the last id: that of an event without data counts, too.
    """
    text = stream.removeprefix(b"\xef\xbb\xbf")
    text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    found: list[ServerSentEvent] = []
    data: list[bytes] = []
    type = id = last_id = ""
    for line in text.split(b"\n")[:-1]:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if data:
                whole = b"\n".join(data)
                found.append(
                    ServerSentEvent(whole[:LIMIT], id, type or "message", len(whole))
                )
            data, type, last_id = [], "", id
        elif name == b"data":
            data.append(value)
        elif len(value) <= MAX_FIELD_BYTES:
            if name == b"id" and b"\0" not in value:
                id = value.decode(errors="replace")
            elif name == b"event":
                type = value.decode(errors="replace")
    return found, last_id


@given(cut())
def test_events_are_the_same_however_the_stream_is_cut(
    given: tuple[bytes, list[bytes]],
) -> None:
    stream, parts = given
    parser = SseParser(LIMIT)

    found = []
    for part in parts:
        found += parser.feed(part)
        assert parser.held_bytes <= MAX_FIELD_BYTES + 3 * LIMIT

    assert (found, parser.last_event_id) == by_the_book(stream)


@given(st.lists(events))
def test_rendered_events_come_back(given: list[ServerSentEvent]) -> None:
    found = SseParser(1 << 20).feed(render(given))

    assert found == [event._replace(size=len(event.data)) for event in given]


@given(st.lists(st.binary().map(lambda data: data.translate(None, b"\r\n"))))
def test_numbered_events_come_back(data: list[bytes]) -> None:
    found = SseParser(1 << 20).feed(numbered(data, 5))

    assert [(event.data, event.id) for event in found] == [
        (one, str(id)) for id, one in enumerate(data, 5)
    ]
