from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from penstock.log import Columns, CommittedFrame, Log
from penstock.log.rows import SMALL_EVENTS, RowEvents, Rows, RowsPart, joined

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
