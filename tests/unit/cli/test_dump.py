from __future__ import annotations

from penstock.cli.log import event_lines, events_of, frame_lines, frame_of
from penstock.log import Batch, Columns
from penstock.log import frame_of as encoded
from penstock.model.event import Event

ID_BASE = bytes.fromhex("018bcfe568007abc8123456709abcdef")


def test_events_of_several_batches_are_limited() -> None:
    batches = [batch(0), batch(3)]

    assert [event.offset for event in events_of(batches, 4)] == [0, 1, 2, 3]
    assert len(list(events_of(batches, None))) == 6


def test_an_event_shows_what_it_has() -> None:
    event = Event(
        topic="t",
        offset=7,
        id="an id",
        timestamp_ms=0,
        payload=b'{"a":1}',
        key=b"k",
        priority=3,
        headers={"a": "b"},
        parent="p",
        producer="q",
    )

    assert list(event_lines(event)) == [
        "offset 7  1970-01-01T00:00:00.000Z",
        "  id        an id",
        "  priority  3",
        "  key       k",
        "  header    a: b",
        "  parent    p",
        "  producer  q",
        '  payload   7 bytes: {"a":1}',
    ]


def test_an_event_does_not_show_what_it_has_not() -> None:
    event = Event(topic="t", offset=7, id="an id", timestamp_ms=0, payload=b"")

    assert [line.split()[0] for line in event_lines(event)] == [
        "offset",
        "id",
        "payload",
    ]


def test_a_frame_shows_its_header_and_columns() -> None:
    frame = frame_of(batch(3))

    assert list(frame_lines(frame)) == [
        "frame of offsets 3..5: 3 events, 96 bytes",
        "  time      1970-01-01T00:00:00.005Z to 1970-01-01T00:00:00.005Z",
        "  id base   018bcfe5-6800-7abc-8123-456709abcdef",
        "  columns   payload 19 B",
    ]


def test_a_frame_with_gaps_says_so() -> None:
    whole = batch(3)
    some = Batch.of("t", encoded(whole.take([0, 2]), 3, ID_BASE))

    frame = frame_of(some)

    assert frame.gaps
    assert "offsets 3..5, with gaps: 2 events" in next(frame_lines(frame))


def batch(base: int) -> Batch:
    return Batch.of("t", encoded(Columns([b"x", b"y", b"z"], 5), base, ID_BASE))
