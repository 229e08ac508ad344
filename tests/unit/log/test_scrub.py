from __future__ import annotations

from pathlib import Path

import pytest

from penstock.log import Columns, Log, LogOptions
from tests.unit.log.faults import flip

# No checking on start, little in memory, so that the scrub does the work.
OPTIONS = LogOptions(start_check_bytes=0, tail_cache_bytes=0)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Segments of three frames of 300 KiB each."""
    log = Log.open(tmp_path, OPTIONS)
    log.create_topic("t")
    for _ in range(3):
        for _ in range(5):
            log.append("t", Columns([bytes(300 << 10)]))
            log.commit()
        log.roll("t")
    log.checkpoint()
    return log


def test_step_is_bounded_and_the_last_one_says_so(log: Log) -> None:
    finished = [log.scrub(1 << 20) for _ in range(8)]

    # The start has verified one frame; 14 are left for the first time, then 15.
    assert finished == [False, False, False, True, False, False, False, True]
    log.close()


def test_damage_is_found_before_anybody_reads_it(log: Log) -> None:
    flip(log.topic("t").segments[0].path, 400 << 10)

    while not log.scrub(1 << 20):
        pass

    assert [(d.first_offset, d.end_offset) for d in log.damages] == [(1, 2)]
    log.close()


def test_scrub_begins_anew_when_it_is_through(log: Log) -> None:
    while not log.scrub(1 << 30):
        pass
    flip(log.topic("t").segments[0].path, 400 << 10)

    while not log.scrub(1 << 30):
        pass

    assert len(list(log.damages)) == 1
    log.close()


def test_segments_may_go_between_two_steps(log: Log) -> None:
    log.scrub(1)
    log.trim("t", 10)

    while not log.scrub(1 << 20):
        pass

    assert list(log.damages) == []
    log.close()


def test_segment_under_way_may_go_between_two_steps(log: Log) -> None:
    while not log.scrub(1 << 20):
        pass
    for _ in range(11):
        log.scrub(1)

    log.delete_topic("t")
    log.create_topic("t")
    log.append("t", Columns([bytes(100)] * 10))
    log.roll("t")
    while not log.scrub(1 << 20):
        pass

    assert list(log.damages) == []
    log.close()


def test_segment_under_way_may_be_cut_between_two_steps(log: Log) -> None:
    for _ in range(2):
        log.scrub(1)

    log.truncate("t", 12)
    while not log.scrub(1 << 20):
        pass

    assert list(log.damages) == []
    log.close()
