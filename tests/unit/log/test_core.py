from __future__ import annotations

import errno
import logging
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.clock import ManualClock
from penstock.errors import Backlogged, DiskFull, LogClosed, WriteFailed
from penstock.log import Columns, Log, LogOptions, TopicOptions
from penstock.log.store import TakeCheckpoint, WriteOut
from tests.unit.log.faults import Counter, FaultyFiles, offsets, payloads

SMALL = LogOptions(
    journal_file_bytes=4096,
    checkpoint_bytes=4096,
    write_out_bytes=1024,
    tail_cache_bytes=1024,
)
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


def actions(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[str]:
    return [
        getattr(r, "action", "?")
        for r in caplog.records
        if r.levelno >= level and getattr(r, "action", "") != "journal_rolled"
    ]


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


# Failures


@pytest.mark.parametrize(
    ("call", "code", "kind"),
    [
        ("write", errno.ENOSPC, DiskFull),
        ("write", errno.EDQUOT, DiskFull),
        ("write", errno.EIO, WriteFailed),
        ("sync", errno.EIO, WriteFailed),
    ],
)
def test_failed_commit_confirms_nothing_and_gives_its_offsets_out_again(
    log: Log, disk: FaultyFiles, call: str, code: int, kind: type[WriteFailed]
) -> None:
    add(log, b"kept")
    log.commit()
    failed = add(log, b"lost", b"lost too")
    disk.fail(call, "/journal", error=code)

    with pytest.raises(WriteFailed) as caught:
        log.commit()

    assert type(caught.value) is kind
    assert log.outcome(failed) == "failed"
    assert payloads(log, "t") == [b"kept"]
    assert log.append("t", Columns([b"again"])).base_offset == 1
    log.commit()
    assert payloads(log, "t") == [b"kept", b"again"]


@pytest.mark.parametrize("call", ["write", "sync"])
def test_failed_commit_is_gone_after_a_restart(
    tmp_path: Path, log: Log, disk: FaultyFiles, call: str
) -> None:
    add(log, b"kept")
    log.commit()
    add(log, b"lost")
    disk.fail(call, "/journal", error=errno.EIO, half=True)
    with pytest.raises(WriteFailed):
        log.commit()
    add(log, b"again")
    log.commit()
    log.abandon()

    log = Log.open(tmp_path)

    assert payloads(log, "t") == [b"kept", b"again"]
    assert (log.report.cuts, log.report.damages) == ([], [])
    log.close()


def test_group_collected_on_top_of_a_failed_one_fails_with_it(
    log: Log, disk: FaultyFiles
) -> None:
    first = add(log, b"a")
    commit = log.begin_commit()
    assert commit is not None
    second = add(log, b"b")
    disk.fail("sync", "/journal", error=errno.EIO)
    commit.run()

    error = log.end_commit(commit)

    assert isinstance(error, WriteFailed)
    assert (log.outcome(first), log.outcome(second)) == ("failed", "failed")
    third = add(log, b"c")
    log.commit()
    assert log.outcome(third) == "synced"
    assert offsets(log, "t") == [0]


def test_failed_commits_are_reported_once_and_so_is_their_end(
    log: Log, disk: FaultyFiles, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    disk.fail("write", "/journal", times=3)
    for _ in range(3):
        add(log, b"lost")
        with pytest.raises(DiskFull):
            log.commit()

    add(log, b"kept")
    log.commit()

    assert actions(caplog) == ["commit_failed", "commit_resumed"]


def test_topic_of_a_failed_commit_does_not_exist(log: Log, disk: FaultyFiles) -> None:
    log.create_topic("new")
    log.append("new", Columns([b"a"]))
    disk.fail("write", "/journal")

    with pytest.raises(DiskFull):
        log.commit()

    assert log.topics() == ["t"]
    log.create_topic("new")
    log.commit()
    assert log.topics() == ["new", "t"]


def test_settings_of_a_failed_commit_are_as_before(log: Log, disk: FaultyFiles) -> None:
    log.set_options("t", TopicOptions(compact=True))
    disk.fail("write", "/journal")

    with pytest.raises(DiskFull):
        log.commit()

    assert log.topic("t").options == TopicOptions()


def test_sync_after_a_failed_sync_is_not_a_lie(
    tmp_path: Path, disk: FaultyFiles
) -> None:
    log = Log.open(tmp_path, files=disk)
    log.create_topic("u", UNSYNCED)
    log.sync()
    group = add(log, b"a", topic="u")
    log.commit()
    disk.fail("sync", "/journal", error=errno.EIO)
    with pytest.raises(WriteFailed):
        log.sync()
    before = disk.count("sync", "/journal")

    try:
        log.sync()
    except WriteFailed:
        assert log.outcome(group) != "synced"
    else:
        assert disk.count("sync", "/journal") > before, "nothing was synced"
    log.abandon()


def test_event_that_a_failed_sync_lost_is_not_called_synced_later(
    tmp_path: Path, disk: FaultyFiles
) -> None:
    log = Log.open(tmp_path, files=disk)
    log.create_topic("u", UNSYNCED)
    log.sync()
    length = Path(log.intake.journal._name()).stat().st_size
    path = Path(log.intake.journal._name())
    unsynced = add(log, b"first", topic="u")
    log.commit()
    add(log, b"second", topic="u")
    disk.fail("sync", "/journal", error=errno.EIO)
    with pytest.raises(WriteFailed):
        log.sync()
    # What a kernel may do when a sync fails: the pages are dropped.
    path.write_bytes(path.read_bytes()[:length])
    add(log, b"third", topic="u")
    log.sync()
    claimed = log.outcome(unsynced)
    log.abandon()

    log = Log.open(tmp_path)

    found = payloads(log, "u")
    assert claimed != "synced" or b"first" in found, found
    log.close()


def test_failing_position_file_does_not_stop_the_log(
    log: Log, disk: FaultyFiles
) -> None:
    disk.fail("write", "/position", error=errno.EIO)
    group = add(log, b"a")

    try:
        log.commit()
    except WriteFailed:
        assert log.outcome(group) == "failed"

    add(log, b"b")
    log.commit()
    assert payloads(log, "t")[-1] == b"b"


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
    log.keeper.begin_write_out(0)

    with pytest.raises(Backlogged):
        log.checkpoint()

    log.abandon()


@pytest.mark.parametrize("call", ["write", "create"])
def test_full_segments_refuse_more_events_and_accept_again(
    tmp_path: Path, disk: FaultyFiles, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    caplog.set_level(logging.INFO)
    log = Log.open(tmp_path, SMALL, files=disk)
    log.create_topic("t")
    log.commit()
    disk.fail(call, "/topics", times=1000)
    kept: list[bytes] = []
    with pytest.raises(DiskFull):
        for number in range(1000):
            kept += fill(log, 1, number)
    caplog.clear()
    during = payloads(log, "t")
    disk.heal()

    log.commit()
    kept += fill(log, 30, 1000)

    assert during == kept[: len(during)]
    assert payloads(log, "t") == kept
    assert "write_out_resumed" in actions(caplog)
    log.abandon()
    log = Log.open(tmp_path)
    assert payloads(log, "t") == kept
    log.close()


def test_log_that_refused_events_accepts_them_again_without_being_asked_to_commit(
    tmp_path: Path, disk: FaultyFiles
) -> None:
    log = Log.open(tmp_path, SMALL, files=disk)
    log.create_topic("t")
    log.commit()
    disk.fail("write", "/topics", times=1000)
    with pytest.raises(DiskFull):
        fill(log, 1000)
    disk.heal()

    with suppress(DiskFull):
        fill(log, 1)
    fill(log, 1)

    assert log.keeper.error is None
    log.close()


def test_failed_write_out_is_reported_once(
    tmp_path: Path, disk: FaultyFiles, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    log = Log.open(tmp_path, SMALL, files=disk)
    log.create_topic("t")
    log.commit()
    disk.fail("write", "/topics", times=1000)

    with pytest.raises(DiskFull):
        fill(log, 1000)

    assert actions(caplog) == ["write_out_failed"]
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
