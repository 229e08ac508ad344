"""The rules of the WHATWG standard, one by one."""

from __future__ import annotations

import pytest

from penstock.wire.sse import MAX_FIELD_BYTES, ServerSentEvent, SseParser

LIMIT = 100


def event(data: bytes, id: str = "", type: str = "message") -> ServerSentEvent:
    return ServerSentEvent(data, id, type, len(data))


# What it shows -> stream, events.
CASES = {
    "an empty line ends an event": (b"data: a\n\n", [event(b"a")]),
    "CRLF ends lines": (b"data: a\r\n\r\n", [event(b"a")]),
    "CR ends lines": (b"data: a\r\r", [event(b"a")]),
    "ends of lines may be mixed": (
        b"data: a\ndata: b\r\ndata: c\rdata: d\n\r\n",
        [event(b"a\nb\nc\nd")],
    ),
    "LF CR is two ends of lines": (
        b"data: a\n\rdata: b\n\n",
        [event(b"a"), event(b"b")],
    ),
    "data lines are joined": (b"data: a\ndata: b\n\n", [event(b"a\nb")]),
    "one space is dropped": (b"data:  a\n\ndata:b\n\n", [event(b" a"), event(b"b")]),
    "a colon in a value is its own": (b"data: {a: 1}\n\n", [event(b"{a: 1}")]),
    "a field without colon is empty": (b"data\ndata\n\n", [event(b"\n")]),
    "empty data is data": (b"data:\n\n", [event(b"")]),
    "no data, no event": (b"event: x\nid: 1\n\n\n", []),
    "a type is for one event": (
        b"event: x\ndata: a\n\ndata: b\n\n",
        [event(b"a", type="x"), event(b"b")],
    ),
    "a type without data is forgotten": (b"event: x\n\ndata: b\n\n", [event(b"b")]),
    "an id stays": (
        b"id: 1\ndata: a\n\ndata: b\n\n",
        [event(b"a", "1"), event(b"b", "1")],
    ),
    "an id without data stays": (b"id: 1\n\ndata: b\n\n", [event(b"b", "1")]),
    "an empty id is an id": (
        b"id: 1\ndata: a\n\nid\ndata: b\n\n",
        [event(b"a", "1"), event(b"b")],
    ),
    "an id with a NUL is ignored": (
        b"id: 1\ndata: a\n\nid: 2\0\ndata: b\n\n",
        [event(b"a", "1"), event(b"b", "1")],
    ),
    "comments mean nothing": (b": hello\n:\ndata: a\n: b\n\n", [event(b"a")]),
    "other fields mean nothing": (
        b"Data: x\nfoo: y\n data: z\ndata: a\n\n",
        [event(b"a")],
    ),
    "a byte order mark is skipped": (b"\xef\xbb\xbfdata: a\n\n", [event(b"a")]),
    "a second byte order mark is not": (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
    "half a byte order mark is not": (b"\xef\xbbdata: a\n\n", []),
    "empty lines are free": (
        b"\n\n\ndata: a\n\n\n\n\ndata: b\n\n",
        [event(b"a"), event(b"b")],
    ),
    "what is not ended is no event": (b"data: a\n\ndata: b\n", [event(b"a")]),
    "bytes stay as they are": (b"data: \xff\0\n\n", [event(b"\xff\0")]),
    "a type need not be UTF-8": (b"event: \xff\ndata: a\n\n", [event(b"a", type="�")]),
    "data beyond the limit are cut": (
        b"data: %b\nid: 1\n\n" % (b"x" * 500),
        [ServerSentEvent(b"x" * LIMIT, "1", "message", 500)],
    ),
    "many short lines are cut as well": (
        b"data: %b\n" % (b"x" * 59) * 500 + b"id: 1\n\ndata: a\n\n",
        [
            ServerSentEvent(
                (b"x" * 59 + b"\n" + b"x" * 40), "1", "message", 500 * 60 - 1
            ),
            event(b"a", "1"),
        ],
    ),
    "a very long line is cut": (
        b"data: a\ndata: %b\nid: 1\n\n" % (b"x" * 20_000),
        [ServerSentEvent(b"a\n" + b"x" * (LIMIT - 2), "1", "message", 20_002)],
    ),
    "a very long comment means nothing": (
        b"data: a\n: %b\n\n" % (b"x" * 20_000),
        [event(b"a")],
    ),
    "a very long id is ignored": (
        b"id: %b\ndata: a\n\n" % (b"1" * (MAX_FIELD_BYTES + 1)),
        [event(b"a")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_stream_has_its_events(case: str) -> None:
    stream, expected = CASES[case]

    assert SseParser(LIMIT).feed(stream) == expected


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 3, 7, 4096])
@pytest.mark.parametrize("case", CASES)
def test_a_stream_has_them_piece_by_piece(case: str, size: int) -> None:
    stream, expected = CASES[case]
    parser = SseParser(LIMIT)

    found = []
    for start in range(0, len(stream), size):
        found += parser.feed(stream[start : start + size])

    assert found == expected


def test_an_event_comes_with_the_byte_that_ends_it() -> None:
    parser = SseParser(LIMIT)

    assert parser.feed(b"data: a\r\n\r") == [event(b"a")]
    assert parser.feed(b"\ndata: b\n\n") == [event(b"b")]


def test_an_event_that_was_cut_says_so() -> None:
    short, long = SseParser(LIMIT).feed(b"data: a\n\ndata: %b\n\n" % (b"x" * 101))

    assert (short.is_cut, long.is_cut) == (False, True)


def test_the_last_id_is_that_of_the_last_empty_line() -> None:
    parser = SseParser(LIMIT, "0")

    parser.feed(b"id: 1\ndata: a\n")
    assert parser.last_event_id == "0"
    parser.feed(b"\n")
    assert parser.last_event_id == "1"
    parser.feed(b"id: 2\n\n")
    assert parser.last_event_id == "2"


def test_an_id_of_the_connection_before_stays() -> None:
    assert SseParser(LIMIT, "7").feed(b"data: a\n\n") == [event(b"a", "7")]


@pytest.mark.parametrize(
    ("text", "retry_ms"),
    [(b"3000", 3000), (b"0", 0), (b"-1", None), (b"1.5", None), (b"", None)],
)
def test_a_retry_time_is_digits(text: bytes, retry_ms: int | None) -> None:
    parser = SseParser(LIMIT)

    parser.feed(b"retry: %b\n\n" % text)

    assert parser.retry_ms == retry_ms


@pytest.mark.parametrize("text", [b"x", b"data: x\n", b": c\n", b"id: " + b"1" * 9999])
def test_what_is_held_is_bounded(text: bytes) -> None:
    parser = SseParser(LIMIT)

    for _ in range(20_000):
        assert parser.feed(text) == []
        assert parser.held_bytes <= MAX_FIELD_BYTES + 2 * LIMIT
