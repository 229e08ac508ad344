from __future__ import annotations

from pathlib import Path

import pytest

from penstock.clock import ManualClock
from penstock.log import Columns, Log
from penstock.log.housekeeping import SegmentFacts, new_start
from penstock.log.options import TopicOptions
from tests.unit.log.faults import offsets, payloads
from tests.unit.log.scenes import add, keyed, segments

NOW_MS = 1_000_000
# End offset, bytes, largest timestamp.
SEALED = [
    SegmentFacts(10, 100, NOW_MS - 50_000),
    SegmentFacts(20, 200, NOW_MS - 30_000),
    SegmentFacts(30, 300, NOW_MS - 10_000),
]


@pytest.mark.parametrize(
    ("age_s", "size", "start"),
    [
        (None, None, None),
        (50, None, None),  # exactly as old is not older
        (49.999, None, 10),
        (20, None, 20),
        (1, None, 30),
        (None, 640, None),  # 600 sealed and 40 active
        (None, 639, 10),
        (None, 540, 10),
        (None, 339, 30),
        (None, 1, 30),  # the active one stays
        (40, 400, 20),  # whichever asks for more
        (20, 600, 20),
    ],
)
def test_start_moves_behind_the_segments_that_have_to_go(
    age_s: float | None, size: int | None, start: int | None
) -> None:
    options = TopicOptions(retention_age_s=age_s, retention_bytes=size)

    assert new_start(SEALED, 40, options, NOW_MS) == start


def test_young_segment_protects_the_older_ones_behind_it() -> None:
    out_of_order = [SEALED[2], SEALED[0]]
    options = TopicOptions(retention_age_s=20)

    assert new_start(out_of_order, 0, options, NOW_MS) is None


def test_topic_without_sealed_segments_keeps_everything() -> None:
    options = TopicOptions(retention_age_s=1, retention_bytes=1)

    assert new_start([], 1000, options, NOW_MS) is None


# Maintenance


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> Log:
    log = Log.open(tmp_path, clock=clock)
    log.create_topic("t")
    log.sync()
    return log


def test_maintain_lets_old_segments_go(log: Log, clock: ManualClock) -> None:
    log.set_options("t", TopicOptions(retention_age_s=100))
    add(log, b"old", at_ms=1_000_000)
    log.roll("t")
    clock.advance(60)
    add(log, b"young", at_ms=1_060_000)
    log.roll("t")
    before = log.maintain()
    clock.advance(41)

    freed = log.maintain()

    assert (before, freed > 0) == (0, True)
    assert payloads(log, "t") == [b"young"]


def test_maintain_lets_an_active_segment_go_when_all_of_it_is_old(
    log: Log, clock: ManualClock
) -> None:
    log.set_options("t", TopicOptions(retention_age_s=100))
    add(log, b"old", at_ms=1_000_000)
    log.checkpoint()
    clock.advance(101)

    log.maintain()

    assert payloads(log, "t") == []
    assert log.append("t", Columns([b"next"])).base_offset == 1


def test_maintain_lets_old_events_go_that_were_still_in_memory(
    tmp_path: Path, clock: ManualClock
) -> None:
    options = TopicOptions(retention_age_s=100.0, segment_age_s=10.0)
    with Log.open(tmp_path / "other", clock=clock) as log:
        log.create_topic("t", options)
        starts = []
        for _ in range(30):
            log.append("t", Columns([b"x"], log.now_ms()))
            log.maintain()
            starts.append(log.topic("t").start_offset)
            clock.advance(10.0)

    assert starts[:10] == [0] * 10
    assert starts[-1] >= 15


def test_maintain_keeps_a_topic_within_its_size(log: Log) -> None:
    log.set_options("t", TopicOptions(retention_bytes=3000))
    for number in range(5):
        add(log, b"%01000d" % number)
        log.roll("t")

    log.maintain()

    assert log.topic("t").bytes <= 3000
    assert offsets(log, "t") == [3, 4]


def test_maintain_rolls_by_age_also_after_a_restart(
    tmp_path: Path, log: Log, clock: ManualClock
) -> None:
    log.set_options("t", TopicOptions(segment_age_s=100))
    add(log, b"a")
    log.close()
    log = Log.open(tmp_path, clock=clock)
    log.maintain()
    before = segments(log)
    clock.advance(100)

    log.maintain()

    assert (before, segments(log)) == ([0], [0, 1])
    log.close()


def test_maintain_compacts_what_wants_to_be(log: Log) -> None:
    keyed(log, b"a")
    keyed(log, b"a")
    untouched = log.maintain()
    log.set_options("t", TopicOptions(compact=True))

    freed = log.maintain()

    assert (untouched, freed > 0) == (0, True)
    assert offsets(log, "t") == [1]


def test_maintain_of_an_empty_log_does_nothing(log: Log) -> None:
    log.set_options("t", TopicOptions(retention_age_s=1, retention_bytes=1))

    assert log.maintain() == 0
