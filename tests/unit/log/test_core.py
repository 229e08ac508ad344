from __future__ import annotations

import errno
from pathlib import Path

import pytest

from penstock.clock import ManualClock
from penstock.errors import Backlogged, DiskFull, LogClosed, WriteFailed
from penstock.log import Columns, Log, LogOptions, TopicOptions
from penstock.log.store import TakeCheckpoint, WriteOut
from tests.unit.log.faults import Counter, FaultyFiles, payloads
from tests.unit.log.scenes import SMALL

UNSYNCED = TopicOptions(durability="os")


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def log(tmp_path: Path, disk: FaultyFiles) -> Log:
    log = Log.open(tmp_path, files=disk, clock=ManualClock())
    log.create_topic("t")
    log.sync()
    return log


def add(log: Log, *texts: bytes, topic: str = "t") -> int:
    return log.append(topic, Columns(texts)).group


# What became of a group


def test_group_is_pending_until_committed_and_then_synced(log: Log) -> None:
    group = add(log, b"a")
    before = log.outcome(group)

    log.commit()

    assert (before, log.outcome(group)) == ("pending", "synced")


def test_group_of_an_unsynced_topic_is_written_until_somebody_syncs(log: Log) -> None:
    log.create_topic("u", UNSYNCED)
    log.commit()
    group = add(log, b"a", topic="u")
    log.commit()
    before = log.outcome(group)

    log.sync()

    assert (before, log.outcome(group)) == ("written", "synced")


def test_commit_of_nothing_does_nothing(log: Log) -> None:
    before = (log.written, log.syncs)

    log.commit()
    log.sync()

    assert (log.written, log.syncs) == before


def test_events_cannot_be_read_before_their_commit_ended(log: Log) -> None:
    add(log, b"a")
    commit = log.begin_commit()
    assert commit is not None
    commit.run()
    during = payloads(log, "t")

    log.end_commit(commit)

    assert (during, payloads(log, "t")) == ([], [b"a"])


def test_next_group_collects_while_one_is_committed(log: Log) -> None:
    first = add(log, b"a")
    commit = log.begin_commit()
    assert commit is not None
    second = add(log, b"b")
    assert log.begin_commit() is None, "one at a time"
    commit.run()
    log.end_commit(commit)

    assert second == first + 1
    assert (log.outcome(first), log.outcome(second)) == ("synced", "pending")
    log.commit()
    assert payloads(log, "t") == [b"a", b"b"]


def test_thousand_publishers_of_one_event_cost_one_sync(log: Log) -> None:
    before = log.syncs
    for number in range(1000):
        add(log, b"%d" % number)

    log.commit()

    assert log.syncs == before + 1
    assert len(payloads(log, "t")) == 1000


# Segments and checkpoints


def fill(log: Log, count: int, start: int = 0) -> list[bytes]:
    """Events in groups of their own, each of which brings a write-out nearer."""
    texts = [b"%0200d" % number for number in range(start, start + count)]
    for text in texts:
        add(log, text)
        log.commit()
    return texts


def test_write_outs_and_checkpoints_fall_due_by_themselves(tmp_path: Path) -> None:
    log = Log.open(tmp_path, SMALL)
    log.create_topic("t")

    texts = fill(log, 100)

    assert log.topic("t").bytes > 0
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2
    assert len(list((tmp_path / "journal").iterdir())) < 10
    assert payloads(log, "t") == texts
    log.abandon()
    log = Log.open(tmp_path, SMALL)
    assert payloads(log, "t") == texts
    assert log.report.journal_bytes < 3 * 4096
    log.close()


def test_work_on_segments_is_handed_out_once(tmp_path: Path) -> None:
    log = Log.open(tmp_path, SMALL)
    log.create_topic("t")
    log.commit()
    for number in range(5):
        add(log, b"%0400d" % number)
        commit = log.begin_commit()
        assert commit is not None
        commit.run()
        log.end_commit(commit)

    work = log.begin_store()

    assert isinstance(work, WriteOut | TakeCheckpoint)
    assert log.begin_store() is None
    work.run()
    log.end_store(work)
    assert len(payloads(log, "t")) == 5
    log.close()


def test_checkpoint_waits_for_work_that_is_under_way(tmp_path: Path) -> None:
    log = Log.open(tmp_path, SMALL)
    log.create_topic("t")
    log.commit()
    add(log, bytes(8000))
    log.flusher.begin_write_out(0)

    with pytest.raises(Backlogged):
        log.checkpoint()

    log.abandon()


def test_segment_whose_sync_failed_is_written_again(
    tmp_path: Path, log: Log, disk: FaultyFiles
) -> None:
    add(log, b"a")
    log.commit()
    disk.fail("sync", ".seg", error=errno.EIO)
    with pytest.raises(WriteFailed):
        log.checkpoint()
    before = disk.count("write", ".seg")

    log.checkpoint()

    assert disk.count("write", ".seg") == before + 1
    log.checkpoint()
    assert disk.count("write", ".seg") == before + 1, "once is enough"
    log.abandon()
    log = Log.open(tmp_path)
    assert payloads(log, "t") == [b"a"]
    assert log.report.journal_bytes == 0
    log.close()


@pytest.mark.parametrize(
    ("call", "part"),
    [
        ("create", "/topics"),
        ("make_directory", "/topics"),
        ("write", ".seg"),
        ("sync", ".seg"),
        ("sync_directory", "/topics"),
        ("create", "/checkpoints"),
        ("write", "/checkpoints"),
        ("sync", "/checkpoints"),
        ("rename", "/checkpoints"),
        ("sync_directory", "/checkpoints"),
    ],
)
def test_checkpoint_that_fails_anywhere_loses_nothing_and_is_taken_later(
    tmp_path: Path, log: Log, disk: FaultyFiles, call: str, part: str
) -> None:
    add(log, b"a")
    log.commit()
    disk.fail(call, part)

    with pytest.raises(DiskFull):
        log.checkpoint()

    add(log, b"b")
    log.commit()
    assert payloads(log, "t") == [b"a", b"b"]
    log.checkpoint()
    log.abandon()
    log = Log.open(tmp_path)
    assert payloads(log, "t") == [b"a", b"b"]
    assert log.report.journal_bytes == 0
    log.close()


@pytest.mark.parametrize("part", [".seg", "/checkpoints"])
def test_crash_after_a_failed_checkpoint_loses_nothing(
    tmp_path: Path, log: Log, disk: FaultyFiles, part: str
) -> None:
    add(log, b"a")
    log.commit()
    disk.fail("sync", part)
    with pytest.raises(DiskFull):
        log.checkpoint()
    add(log, b"b")
    log.commit()
    log.abandon()

    log = Log.open(tmp_path)

    assert payloads(log, "t") == [b"a", b"b"]
    log.close()


def test_checkpoint_due_at_a_failed_commit_is_taken_at_the_next(
    tmp_path: Path, disk: FaultyFiles
) -> None:
    owner = Counter()
    log = Log.open(tmp_path, SMALL, files=disk, owners={300: owner})
    log.create_topic("t")
    log.commit()
    add(log, bytes(5000))
    log.commit()
    owner.total += 1
    log.record(300, b"\1")
    disk.fail("write", "/journal")
    with pytest.raises(DiskFull):
        log.commit()
    owner.total -= 1

    add(log, b"next")
    log.commit()

    log.abandon()
    after = Counter()
    log = Log.open(tmp_path, SMALL, owners={300: after})
    assert after.total == 0
    assert log.report.checkpoint_position > 0
    log.close()


# Closing


def test_closed_log_says_so(log: Log) -> None:
    log.close()
    log.close()

    for call in (
        log.commit,
        log.checkpoint,
        lambda: log.append("t", Columns([b"a"])),
        lambda: log.create_topic("u"),
        lambda: log.set_options("t", UNSYNCED),
        lambda: log.record(300, b""),
    ):
        with pytest.raises(LogClosed, match="is closed"):
            call()


def test_failure_while_closing_is_raised_after_letting_go(
    tmp_path: Path, disk: FaultyFiles
) -> None:
    log = Log.open(tmp_path, files=disk)
    log.create_topic("t")
    add(log, b"a")
    log.commit()
    disk.fail("write", "/checkpoints")

    with pytest.raises(DiskFull):
        log.close()

    assert log.directory == str(tmp_path)
    with Log.open(tmp_path) as log:
        assert payloads(log, "t") == [b"a"]


def test_journal_that_cannot_be_cut_while_closing_still_frees_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = FaultyFiles()
    log = Log.open(tmp_path, files=disk)
    log.create_topic("t")
    add(log, b"a")
    log.commit()
    disk.fail("truncate", "/journal", error=errno.EIO)

    with pytest.raises((OSError, WriteFailed)):
        log.close()

    assert disk._paths == {}, "these stay open"


def test_abandoned_log_stays_so(log: Log) -> None:
    log.abandon()

    log.abandon()
    log.close()

    with pytest.raises(LogClosed):
        log.commit()


def test_context_manager_closes(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t")
        add(log, b"a")

    with Log.open(tmp_path) as log:
        assert payloads(log, "t") == [b"a"]
        assert log.report.journal_bytes == 0


def test_pending_bytes_are_those_of_the_open_group(log: Log) -> None:
    before = log.pending_bytes
    add(log, bytes(100))

    during = log.pending_bytes

    log.commit()
    assert (before, log.pending_bytes) == (0, 0)
    assert during >= 100


def test_open_group_is_the_one_that_collects(log: Log) -> None:
    opened = log.open_group
    assert add(log, b"a") == opened

    commit = log.begin_commit()

    assert commit is not None
    assert (commit.number, log.open_group) == (opened, opened + 1)
    commit.run()
    log.end_commit(commit)
    assert add(log, b"b") == opened + 1


def test_failed_groups_are_skipped_by_the_open_one(log: Log, disk: FaultyFiles) -> None:
    add(log, b"a")
    commit = log.begin_commit()
    assert commit is not None
    behind = add(log, b"b")
    disk.fail("write", ".jnl")
    commit.run()

    log.end_commit(commit)

    assert log.open_group == behind + 1
    assert log.outcome(behind) == "failed"


# Whoever wants to know of commits


def test_commit_is_told_when_its_events_can_be_read(log: Log) -> None:
    told: list[tuple[int, list[bytes]]] = []
    log.on_commit = lambda commit: told.append((commit.number, payloads(log, "t")))

    group = add(log, b"a")
    assert told == []
    log.commit()

    assert told == [(group, [b"a"])]


def test_failed_commit_is_told_when_it_was_taken_back(
    log: Log, disk: FaultyFiles
) -> None:
    told: list[tuple[WriteFailed | None, int]] = []
    log.on_commit = lambda commit: told.append(
        (commit.error, log.topic("t").next_offset)
    )
    add(log, b"a")
    disk.fail("write", ".jnl")

    with pytest.raises(WriteFailed) as caught:
        log.commit()

    assert told == [(caught.value, 0)]


def test_commit_that_makes_room_for_an_append_is_told(tmp_path: Path) -> None:
    with Log.open(tmp_path, LogOptions(group_bytes=1 << 16)) as log:
        log.create_topic("t")
        told: list[int] = []
        log.on_commit = lambda commit: told.append(commit.number)
        first = add(log, bytes(40_000))

        second = add(log, bytes(40_000))

        assert told == [first]
        assert second == first + 1


def test_scrub_goes_through_everything_in_steps(tmp_path: Path) -> None:
    log = Log.open(tmp_path, SMALL)
    log.create_topic("t", TopicOptions(segment_bytes=2048))
    fill(log, 40)
    log.checkpoint()

    steps = 1
    while not log.scrub(1000):
        steps += 1

    assert 5 < steps < 40
    assert list(log.damages) == []
    log.close()


# What is added at the last moment


def test_whoever_is_told_of_a_closing_group_may_add_to_it(log: Log) -> None:
    log.create_topic("u")
    log.commit()
    told: list[tuple[int, list[tuple[str, int]]]] = []

    def close() -> None:
        firsts = [(one.name, at) for one, at in log.touched()]
        told.append((log.open_group, firsts))
        if ("t", 2) in firsts:
            add(log, b"echo", topic="u")

    log.on_close = close
    add(log, b"a", b"b")
    log.commit()
    group = add(log, b"c")
    add(log, b"d")
    log.commit()

    assert [firsts for _, firsts in told] == [[("t", 0)], [("t", 2)]]
    assert told[-1][0] == group
    assert payloads(log, "u") == [b"echo"]
