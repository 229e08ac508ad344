from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.clock import ManualClock
from penstock.errors import (
    Backlogged,
    DiskFull,
    OffsetOutOfRange,
    UnknownTopic,
    WriteFailed,
)
from penstock.log import Columns, Log, LogOptions, TopicOptions
from tests.unit.log.faults import FaultyFiles, offsets, payloads

TEN = [b"%d" % number for number in range(10)]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def log(tmp_path: Path, disk: FaultyFiles, clock: ManualClock) -> Log:
    log = Log.open(tmp_path, files=disk, clock=clock)
    log.create_topic("t")
    log.sync()
    return log


def add(log: Log, *texts: bytes, at_ms: int = 0) -> None:
    log.append("t", Columns(texts, at_ms))
    log.commit()


def segments(log: Log) -> list[int]:
    directory = Path(log.topic("t").directory)
    return sorted(int(path.stem) for path in directory.glob("*.seg"))


def segmented(log: Log, *, stored: bool = True) -> None:
    """Offsets 0 to 9 in segments of 0..3, 4..7, and 8..9."""
    add(log, *TEN[:4])
    log.roll("t")
    add(log, *TEN[4:6])
    add(log, *TEN[6:8])
    log.roll("t")
    add(log, *TEN[8:])
    if stored:
        log.checkpoint()


def crashed(log: Log, directory: Path) -> Log:
    log.abandon()
    return Log.open(directory)


def ended(log: Log, directory: Path) -> Log:
    log.close()
    return Log.open(directory)


RESTARTS = pytest.mark.parametrize("restart", [crashed, ended])
Restart = Callable[[Log, Path], Log]


# Rolling


def test_roll_seals_the_segment_and_begins_another(log: Log) -> None:
    segmented(log)

    assert segments(log) == [0, 4, 8]
    assert payloads(log, "t") == TEN


def test_roll_of_a_fresh_segment_does_nothing(log: Log) -> None:
    add(log, b"a")
    log.roll("t")
    log.roll("t")

    assert segments(log) == [0, 1]


def test_roll_of_an_empty_topic_is_harmless(log: Log) -> None:
    log.roll("t")
    log.roll("t")
    add(log, b"a")

    assert payloads(log, "t") == [b"a"]


def test_roll_that_fails_raises_and_loses_nothing(log: Log, disk: FaultyFiles) -> None:
    add(log, b"a")
    disk.fail("write", ".seg")

    with pytest.raises(DiskFull):
        log.roll("t")

    assert payloads(log, "t") == [b"a"]
    log.roll("t")
    assert segments(log) == [0, 1]


def test_housekeeping_needs_an_idle_log(log: Log) -> None:
    log.append("t", Columns([b"a"]))
    commit = log.begin_commit()

    for change in (
        lambda: log.roll("t"),
        lambda: log.trim("t", 0),
        lambda: log.truncate("t", 0),
        lambda: log.delete_topic("t"),
    ):
        with pytest.raises(Backlogged):
            change()

    assert commit is not None
    commit.run()
    log.end_commit(commit)
    log.roll("t")


# Truncating


@RESTARTS
@pytest.mark.parametrize("offset", range(11))
@pytest.mark.parametrize("stored", [False, True])
def test_truncate_forgets_what_is_behind_the_offset(
    tmp_path: Path, log: Log, offset: int, stored: bool, restart: Restart
) -> None:
    segmented(log, stored=stored)

    log.truncate("t", offset)

    assert payloads(log, "t") == TEN[:offset]
    appended = log.append("t", Columns([b"next"]))
    assert appended.base_offset == offset
    log.commit()
    assert payloads(log, "t") == [*TEN[:offset], b"next"]
    log = restart(log, tmp_path)
    assert payloads(log, "t") == [*TEN[:offset], b"next"]
    assert offsets(log, "t") == list(range(offset + 1))
    assert list(log.damages) == []
    log.close()


@pytest.mark.parametrize("offset", [0, 2, 4, 6, 8, 9])
def test_crash_right_after_a_truncation_leaves_a_sound_log(
    tmp_path: Path, log: Log, offset: int
) -> None:
    segmented(log)
    log.truncate("t", offset)
    log.abandon()

    log = Log.open(tmp_path)

    assert payloads(log, "t") == TEN[:offset]
    assert list(log.damages) == []
    add(log, b"next")
    log.close()
    log = Log.open(tmp_path)
    assert payloads(log, "t") == [*TEN[:offset], b"next"]
    assert list(log.damages) == []
    log.close()


def test_truncate_keeps_the_ids_of_what_stays(log: Log) -> None:
    appended = log.append("t", Columns(TEN))
    log.commit()
    before = [appended.generated_id(index) for index in range(3)]

    log.truncate("t", 3)

    assert log.read("t", 0)[0].ids() == before


@pytest.mark.parametrize("offset", [-1, 11])
def test_truncate_outside_the_topic_is_refused(log: Log, offset: int) -> None:
    add(log, *TEN)

    with pytest.raises(OffsetOutOfRange):
        log.truncate("t", offset)


def test_truncate_that_fails_changes_nothing(log: Log, disk: FaultyFiles) -> None:
    segmented(log)
    disk.fail("sync", "/journal", error=errno.EIO)

    with pytest.raises(WriteFailed):
        log.truncate("t", 3)

    assert payloads(log, "t") == TEN
    assert log.append("t", Columns([b"next"])).base_offset == 10


def test_truncate_in_a_gap_that_compaction_left(log: Log) -> None:
    for first, second in ((b"a", b"b"), (b"a", b"c")):
        log.append("t", Columns([b"1", b"2"], keys=[first, second]))
        log.commit()
    log.compact("t")
    assert offsets(log, "t") == [1, 2, 3]

    log.truncate("t", 1)

    assert offsets(log, "t") == []
    assert log.append("t", Columns([b"next"])).base_offset == 1
    log.commit()
    assert offsets(log, "t") == [1]


def test_events_behind_a_gap_that_was_cut_are_found(log: Log) -> None:
    log.append("t", Columns([b"0", b"1", b"2", b"3"], keys=[b"a", b"b", b"c", b"c"]))
    log.commit()
    log.compact("t")
    log.truncate("t", 3)
    add(log, b"next")

    found = [batch.payloads() for batch in log.read("t", 2, 1)]

    assert found == [[b"next"]]


# Trimming


@RESTARTS
@pytest.mark.parametrize("offset", range(11))
@pytest.mark.parametrize("stored", [False, True])
def test_trim_forgets_what_is_in_front_of_the_offset(
    tmp_path: Path, log: Log, offset: int, stored: bool, restart: Restart
) -> None:
    segmented(log, stored=stored)

    log.trim("t", offset)

    assert payloads(log, "t") == TEN[offset:]
    assert log.topic("t").start_offset == offset
    log = restart(log, tmp_path)
    assert payloads(log, "t") == TEN[offset:]
    assert log.append("t", Columns([b"next"])).base_offset == 10
    assert list(log.damages) == []
    log.close()


def test_trim_removes_segments_that_lie_in_front(log: Log) -> None:
    segmented(log)

    log.trim("t", 7)

    assert segments(log) == [4, 8]
    with pytest.raises(OffsetOutOfRange):
        log.read("t", 6)


def test_trim_outside_the_topic_is_refused(log: Log) -> None:
    add(log, *TEN)
    log.trim("t", 5)

    for offset in (4, 11):
        with pytest.raises(OffsetOutOfRange):
            log.trim("t", offset)


def test_time_in_front_of_a_trimmed_topic_is_its_start(log: Log) -> None:
    log.append("t", Columns(TEN, list(range(100, 110))))
    log.commit()

    log.trim("t", 5)

    assert log.offset_at("t", 0) == 5
    assert log.offset_at("t", 107) == 7


# Deleting


@RESTARTS
def test_deleted_topic_is_gone_and_its_name_is_free(
    tmp_path: Path, log: Log, restart: Restart
) -> None:
    segmented(log)
    directory = Path(log.topic("t").directory)

    log.delete_topic("t")

    assert not directory.exists()
    with pytest.raises(UnknownTopic):
        log.read("t", 0)
    log.create_topic("t")
    add(log, b"new")
    assert payloads(log, "t") == [b"new"]
    log = restart(log, tmp_path)
    assert payloads(log, "t") == [b"new"]
    log.close()


@RESTARTS
def test_deleted_topic_stays_deleted(
    tmp_path: Path, log: Log, restart: Restart
) -> None:
    segmented(log)
    log.delete_topic("t")

    log = restart(log, tmp_path)

    assert log.topics() == []
    assert list((tmp_path / "topics").iterdir()) == []
    log.close()


def test_topic_without_events_is_deleted(log: Log) -> None:
    log.delete_topic("t")

    assert log.topics() == []


def test_delete_that_fails_changes_nothing(log: Log, disk: FaultyFiles) -> None:
    add(log, b"a")
    disk.fail("write", "/journal")

    with pytest.raises(DiskFull):
        log.delete_topic("t")

    assert payloads(log, "t") == [b"a"]


# A checkpoint that falls due with the change knows of the change

DUE = LogOptions(checkpoint_bytes=1024)


@pytest.fixture
def due(tmp_path: Path) -> Log:
    """A log whose next commit takes a checkpoint."""
    log = Log.open(tmp_path, DUE)
    log.create_topic("t")
    log.commit()
    segmented(log, stored=False)
    add(log, bytes(2000))
    return log


def test_checkpoint_that_falls_due_with_a_deletion_does_not_undo_it(
    tmp_path: Path, due: Log
) -> None:
    due.delete_topic("t")
    due.abandon()

    log = Log.open(tmp_path)

    assert log.report.checkpoint_position > 0
    assert log.topics() == []
    log.close()


def test_checkpoint_that_falls_due_with_a_trim_does_not_undo_it(
    tmp_path: Path, due: Log
) -> None:
    due.trim("t", 8)
    due.abandon()

    log = Log.open(tmp_path)

    assert log.topic("t").start_offset == 8
    assert payloads(log, "t") == [*TEN[8:], bytes(2000)]
    assert list(log.damages) == []
    log.close()


def test_checkpoint_that_falls_due_with_a_truncation_does_not_undo_it(
    tmp_path: Path, due: Log
) -> None:
    due.truncate("t", 5)
    due.abandon()

    log = Log.open(tmp_path)

    assert payloads(log, "t") == TEN[:5]
    assert list(log.damages) == []
    log.close()


# Compaction


def keyed(log: Log, *keys: bytes | None) -> None:
    """A segment of its own for each call, one event a key, its offset the text."""
    start = log.topic("t").next_offset
    texts = [b"%0200d" % (start + index) for index in range(len(keys))]
    log.append("t", Columns(texts, keys=keys))
    log.commit()
    log.roll("t")


def numbers(log: Log) -> list[int]:
    return [int(payload) for payload in payloads(log, "t")]


@RESTARTS
def test_compaction_keeps_the_last_event_of_each_key_and_those_without(
    tmp_path: Path, log: Log, restart: Restart
) -> None:
    keyed(log, b"a", b"b", None, b"a")
    keyed(log, b"b", b"c")
    keyed(log, b"a")

    freed = log.compact("t")

    assert freed > 0
    assert offsets(log, "t") == [2, 4, 5, 6]
    assert numbers(log) == [2, 4, 5, 6]
    log = restart(log, tmp_path)
    assert numbers(log) == [2, 4, 5, 6]
    assert log.append("t", Columns([b"next"])).base_offset == 7
    assert list(log.damages) == []
    log.close()


def test_compaction_with_nothing_to_do_frees_nothing(log: Log) -> None:
    assert log.compact("t") == 0
    keyed(log, b"a", b"b")
    assert log.compact("t") == 0

    assert offsets(log, "t") == [0, 1]


def test_compaction_keeps_everything_an_event_has(log: Log) -> None:
    columns = Columns(
        [b"0", b"1"],
        [5, 6],
        ids=[None, "given"],
        keys=[b"a", b"b"],
        priorities=[1, 2],
        headers=[{}, {"h": "v"}],
        parents=["p", None],
        producer="me",
    )
    log.append("t", columns)
    log.commit()
    before = list(log.read("t", 1)[0].events())
    log.append("t", Columns([b"2"], keys=[b"a"]))
    log.commit()

    log.compact("t")

    assert list(log.read("t", 0)[0].events()) == before


def test_compacted_topic_is_read_on_behind_a_segment_that_lost_its_end(
    log: Log,
) -> None:
    keyed(log, b"a", b"b")
    keyed(log, b"b", b"c")
    keyed(log, b"c")

    log.compact("t")

    assert offsets(log, "t") == [0, 2, 4]
    assert [b.offsets() for b in log.read("t", 1, 1)] == [[2]]


@pytest.mark.parametrize("call", ["create", "write", "sync", "rename"])
def test_compaction_that_fails_loses_nothing(
    tmp_path: Path, log: Log, disk: FaultyFiles, call: str
) -> None:
    keyed(log, b"a", b"b")
    keyed(log, b"a", b"b")
    part = "seg" if call == "rename" else "seg.tmp"
    disk.fail(call, part)

    with pytest.raises(DiskFull, match="compacting"):
        log.compact("t")

    assert offsets(log, "t") == [0, 1, 2, 3]
    log.compact("t")
    assert offsets(log, "t") == [2, 3]
    log.abandon()
    log = Log.open(tmp_path)
    assert offsets(log, "t") == [2, 3]
    log.close()


# Maintenance


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
