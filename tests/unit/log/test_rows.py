from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from penstock.log import Columns, CommittedFrame, Log, TopicOptions
from penstock.log.gather import most_bytes
from penstock.log.rows import (
    EVENT_BYTES,
    SMALL_EVENTS,
    RowEvents,
    Rows,
    RowsPart,
    joined,
)
from tests.unit.log.faults import batches

TOPICS = ["a", "b", "c"]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Log.open(tmp_path) as log:
        for name in TOPICS:
            log.create_topic(name)
        log.sync()
        yield log


def test_the_latest_time_of_a_topic_is_known_however_the_times_come() -> None:
    random = Random(3)
    for _ in range(50):
        places = [0, 1, 2, *(random.randrange(3) for _ in range(9))]
        stamps = [random.randrange(-5, 5) for _ in places]
        for times in (stamps, sorted(stamps), [7] * len(places)):
            rows = RowEvents(Columns([b""] * len(places), times), places)

            assert rows.latest() == [
                max(time for time, at in zip(times, places, strict=True) if at == place)
                for place in range(3)
            ]


@pytest.mark.parametrize("given", [{}, {"keys": [b"k", None, b"l", b"m"]}])
def test_parts_are_joined_as_if_their_events_had_come_together(
    given: dict[str, list[bytes | None]],
) -> None:
    first = RowEvents(
        Columns([b"1", b"x", b"2"], [1, 2, 3], ids=["i", "-", "j"]), [0, 1, 0]
    )
    second = RowEvents(
        Columns([b"y", b"3", b"y", b"4"], 4, ids=["k"] * 4), [0, 1, 0, 1]
    )
    second.columns.take(given)
    parts = [
        RowsPart(first, 0, 1, 0, 2, 3, 0),
        RowsPart(second, 1, 1, 2, 2, 4, 2),
    ]

    columns = joined(parts)

    assert columns.payloads == [b"1", b"2", b"3", b"4"]
    assert columns.timestamps == [1, 3, 4, 4]
    assert columns.ids == ["i", "j", "k", "k"]
    assert columns.keys == ([None, None, None, b"m"] if given else None)


def test_few_topics_that_got_much_have_a_frame_each(log: Log) -> None:
    names = TOPICS[:2] * SMALL_EVENTS
    events = [b"%d" % at for at in range(len(names))]
    log.append_rows(names, Columns(events, 1))
    log.append_rows(TOPICS, Columns([b"x", b"y", b"z"], 1))
    commit = log.begin_commit()
    assert commit is not None

    assert [type(one) for one in commit.contents()] == [Rows]
    commit.run()
    log.end_commit(commit)
    log.append_rows(names, Columns(events, 1))
    commit = log.begin_commit()
    assert commit is not None

    assert [type(one) for one in commit.contents()] == [CommittedFrame] * 2
    commit.run()
    log.end_commit(commit)
    for place, name in enumerate(TOPICS[:2]):
        found = [one for batch in log.read(name, 0) for one in batch.payloads()]
        mine = events[place::2]
        assert found == [*mine, b"xy"[place : place + 1], *mine]


# Large events of one topic beside tiny ones of many

OTHERS = [f"u{number}" for number in range(50)]
GROUPS = 120
LARGE_BYTES = 4000


@pytest.fixture(params=["at work", "restarted"])
def uneven(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Log]:
    """A topic of 4 KB events that shares its groups with 50 of empty ones."""
    log = Log.open(tmp_path)
    log.create_topic("large", TopicOptions(segment_bytes=1 << 18))
    for name in OTHERS:
        log.create_topic(name)
    for _ in range(GROUPS):
        payloads = [bytes(LARGE_BYTES), *([b""] * len(OTHERS))]
        log.append_rows(["large", *OTHERS], Columns(payloads, 1))
        log.commit(sync=False)
    if request.param == "restarted":
        log.abandon()
        log = Log.open(tmp_path)
    yield log
    log.abandon()


def test_a_part_takes_what_its_own_events_do(uneven: Log) -> None:
    taken = {name: uneven.topic(name).tail.unwritten_bytes for name in uneven.topics()}

    assert taken.pop("large") == GROUPS * (LARGE_BYTES + EVENT_BYTES)
    assert set(taken.values()) == {GROUPS * EVENT_BYTES}
    assert uneven.unwritten_bytes == sum(taken.values()) + GROUPS * (
        LARGE_BYTES + EVENT_BYTES
    )


def test_frames_gathered_of_large_events_are_no_larger_than_others(uneven: Log) -> None:
    uneven.checkpoint()

    most = most_bytes(1 << 18)
    sizes = [batch.header.length for batch in uneven.read("large", 0, 1 << 30)]
    assert max(sizes) < 1.1 * most
    assert min(sizes[:-1]) > most / 2
    assert sum(sizes) > GROUPS * LARGE_BYTES
    assert len(uneven.read(OTHERS[0], 0)) == 1


@pytest.mark.parametrize("size", [5_000, 2 << 20])
def test_a_large_event_among_tiny_ones_is_in_a_frame_of_its_own(
    log: Log, size: int
) -> None:
    names = ["a", "b", "a", "c", "b", "a"]
    tiny = [b"%d" % at for at in range(len(names))]
    mixed = [*tiny[:4], bytes(size), tiny[5]]
    stamps = [7, 5, 9, 7, 8, 7]

    appended = [
        log.append_rows(names, Columns(events, stamps))
        for events in (tiny, mixed, tiny)
    ]
    commit = log.begin_commit()
    assert commit is not None
    kinds = [type(one) for one in commit.contents()]
    commit.run()
    log.end_commit(commit)

    assert kinds == [Rows, CommittedFrame, Rows]
    found = {name: read_back(log, name) for name in TOPICS}
    for events, answer in zip((tiny, mixed, tiny), appended, strict=True):
        ids = answer.generated_ids()
        rows = zip(names, answer.offsets, ids, events, stamps, strict=True)
        for name, offset, *row in rows:
            assert found[name][offset] == tuple(row)
    assert [one.offsets for one in appended] == [
        [0, 0, 1, 0, 1, 2],
        [3, 2, 4, 1, 3, 5],
        [6, 4, 7, 2, 5, 8],
    ]


def read_back(log: Log, topic: str) -> list[tuple[str, bytes, int]]:
    """Id, payload and time of each event of a topic."""
    events = [one for batch in batches(log, topic) for one in batch.events()]
    assert [one.offset for one in events] == [*range(len(events))]
    return [(one.id, one.payload, one.timestamp_ms) for one in events]
