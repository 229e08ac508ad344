from __future__ import annotations

import json

import msgspec
import pytest

from penstock.client.feed import FeedEvents
from penstock.ingest.options import SseOptions
from penstock.ingest.sorting import MAX_LETTER_BYTES, Sorted, Sorter, StreamNote
from penstock.wire.sse import ServerSentEvent

URL = "http://h/e"
TWEET = b'{"message": {"tweet": {"id_str": "7"}}}'
PANIC = b'{"message": panic}'


def noted(found: Sorted) -> StreamNote:
    """The note, whoever wrote it."""
    return msgspec.structs.replace(found.note, run="")


def event(data: bytes, id: str = "", type: str = "message") -> ServerSentEvent:
    return ServerSentEvent(data, id, type, len(data))


def sort(*events: ServerSentEvent, options: SseOptions | None = None) -> Sorted:
    sorter = Sorter(options or SseOptions(topic="t"), URL)
    return sorter.sort(events, StreamNote("0", 10, 2, 1))


def test_an_object_goes_to_the_topic_with_key_and_headers() -> None:
    found = sort(event(TWEET, "1"), event(b"{}", "", "news"))

    assert found.batches(SseOptions(topic="t"), 5) == [
        FeedEvents(
            "t",
            [TWEET, b"{}"],
            [b"7", None],
            None,
            [{"source": URL, "sse-id": "1"}, {"source": URL, "sse-event": "news"}],
        )
    ]
    assert found.letters == []


def test_without_any_key_there_is_no_column_of_keys() -> None:
    (events,) = sort(event(b"{}")).batches(SseOptions(topic="t"), 5)

    assert events.keys is None


def test_a_panic_is_counted_and_a_letter() -> None:
    options = SseOptions(topic="t", samples="s")

    found = sort(event(PANIC, "1"), event(PANIC, "2"), options=options)

    assert found.letters == [("panic", PANIC), ("panic", PANIC)]
    (sample,) = found.batches(options, 5)
    assert sample.topic == "s"
    assert [json.loads(payload) for payload in sample.payloads] == [
        {"kind": "panics", "ms": None, "count": 2, "at_ms": 5}
    ]
    assert noted(found) == StreamNote("2", 12, 4, 1)


def test_no_sample_is_made_without_panics_or_a_topic() -> None:
    options = SseOptions(topic="t", samples="s")

    assert [one.topic for one in sort(event(b"{}")).batches(options, 5)] == ["t"]
    assert sort(event(PANIC)).batches(SseOptions(topic="t"), 5) == []


def test_another_panic_is_what_counts() -> None:
    options = SseOptions(topic="t", panic="help")

    found = sort(event(b"help"), event(PANIC), options=options)

    assert [reason for reason, _ in found.letters] == [
        "panic",
        "no JSON: invalid character (byte 12)",
    ]
    assert noted(found) == StreamNote("", 12, 3, 2)


def test_no_text_is_a_panic_if_none_is_given() -> None:
    found = sort(event(b""), options=SseOptions(topic="t", panic="", raw=True))

    assert (found.payloads, found.panics) == ([b""], 0)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[]", "JSON, but no object"),
        (b"null", "JSON, but no object"),
        (b'{"a": ', "no JSON: Input data was truncated"),
        (b"", "no JSON: Input data was truncated"),
        (b'{"a": "\xff"}', "no JSON: not UTF-8 (byte 7)"),
        (b'{"message":' * 5000, "no JSON: nested too deeply"),
        (b'{"x":' * 5000, "no JSON: nested too deeply"),
    ],
)
def test_what_is_no_object_is_a_letter_unless_it_is_raw(
    data: bytes, reason: str
) -> None:
    found = sort(event(TWEET, "1"), event(data, "2"), event(TWEET, "3"))
    raw = sort(event(data, "2"), options=SseOptions(topic="t", raw=True))

    assert found.payloads == [TWEET, TWEET]
    assert found.letters == [(reason, data)]
    assert noted(found) == StreamNote("3", 13, 2, 2)
    assert (raw.payloads, raw.letters) == ([data], [])


def test_what_was_cut_is_a_letter_even_if_it_is_raw() -> None:
    data = b"x" * (MAX_LETTER_BYTES + 5)
    long = ServerSentEvent(data, "1", "message", 1 << 30)

    found = sort(long, options=SseOptions(topic="t", raw=True))

    assert found.letters == [
        (f"event of {1 << 30} bytes exceeds {len(data)}", data[:MAX_LETTER_BYTES])
    ]
    assert noted(found) == StreamNote("1", 11, 2, 2)


def test_what_a_broker_refuses_is_a_letter() -> None:
    sorter = Sorter(SseOptions(topic="t"), URL)

    found = sorter.refused(event(TWEET, "1"), StreamNote(), "it says no")

    assert found.letters == [("it says no", TWEET)]
    assert found.payloads == []
    assert noted(found) == StreamNote("1", 1, 0, 1)


def test_a_note_comes_back() -> None:
    note = StreamNote("ü", 3, 1, 1)

    assert StreamNote.of(note.text()) == note
    assert StreamNote.of("") == StreamNote()
    assert json.loads(note.text()) == {
        "last_event_id": "ü",
        "received": 3,
        "panics": 1,
        "malformed": 1,
    }


def test_notes_of_two_processes_differ() -> None:
    one, other = sort(event(b"{}")), sort(event(b"{}"))

    assert one.note != other.note
    assert noted(one) == noted(other)
