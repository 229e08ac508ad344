"""A disk that fails once, where nobody expects it: what was confirmed stays so."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from penstock.errors import Backlogged, WriteFailed
from penstock.files import Buffer
from penstock.log import (
    Columns,
    Log,
    LogOptions,
    Reader,
    TopicOptions,
    frame_of,
    verify,
)
from tests.unit.log.faults import FaultyFiles, batches, flip, journal_of, payloads
from tests.unit.log.scenes import TEN, actions, add, journals, write_out

UNSYNCED = TopicOptions(durability="os")
# A journal file holds two events of LARGE bytes, or one and the creation of topics.
TIGHT = LogOptions(journal_file_bytes=1024)
LARGE = bytes(400)
# A few of these are more than one read of a segment.
HUGE = 100_000
COUNT = 24


@pytest.fixture
def files() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def log(tmp_path: Path, files: FaultyFiles) -> Iterator[Log]:
    """A log with topic t; what a test does not close is abandoned."""
    log = Log.open(tmp_path, files=files)
    log.create_topic("t")
    log.sync()
    yield log
    log.abandon()


def reopened(log: Log) -> Log:
    """The log after a crash of its process, on a disk that is well."""
    log.abandon()
    return Log.open(log.directory)


def events(log: Log) -> list[tuple[int, bytes]]:
    found = [event for batch in batches(log, "t") for event in batch.events()]
    return [(event.offset, event.payload) for event in found]


# The journal


def test_a_failed_group_behind_a_failed_sync_does_not_come_back(
    tmp_path: Path, files: FaultyFiles
) -> None:
    log = Log.open(tmp_path, TIGHT, files=files)
    log.create_topic("os", UNSYNCED)
    log.create_topic("t")
    log.sync()
    for _ in range(3):
        log.append("os", Columns([LARGE]))
        log.commit()
    ended = journal_of(log).unsynced_files()[0]
    files.fail("sync", Path(ended).name, error=errno.EIO)

    appended = log.append("t", Columns([b"failed"]))
    with pytest.raises(WriteFailed):
        log.sync()

    assert log.outcome(appended.group) == "failed"
    with reopened(log) as log:
        assert payloads(log, "t") == []
        assert payloads(log, "os") == [LARGE] * 3


def test_doubt_about_a_file_ends_with_the_next_good_sync(
    tmp_path: Path, files: FaultyFiles
) -> None:
    options = LogOptions(journal_file_bytes=2048, checkpoint_bytes=4096)
    log = Log.open(tmp_path, options, files=files)
    log.create_topic("t", UNSYNCED)
    log.sync()
    work = None
    while work is None:
        put(log, sync=False)
        latest = journal_of(log).unsynced_files()[-1]
        work = log.begin_store()
    for _ in range(8):
        put(log, sync=True)
    files.fail("sync", Path(latest).name, error=errno.EIO)
    work.run()
    log.end_store(work)
    put(log, sync=True)
    before = log.syncs

    for _ in range(10):
        put(log, sync=False)

    assert work.error is not None
    assert log.syncs == before
    log.abandon()


def put(log: Log, *, sync: bool) -> None:
    """Commit an event of topic t and leave work on the segments alone."""
    log.append("t", Columns([LARGE]))
    commit = log.begin_commit(sync=sync)
    assert commit is not None
    commit.run()
    assert log.end_commit(commit) is None


def test_a_journal_file_that_cannot_be_retired_fails_nothing(
    tmp_path: Path, files: FaultyFiles, caplog: pytest.LogCaptureFixture
) -> None:
    options = LogOptions(journal_file_bytes=1024, checkpoint_bytes=1024)
    log = Log.open(tmp_path, options, files=files)
    log.create_topic("t")
    log.sync()
    files.fail("rename", ".spare", error=errno.EIO)

    for _ in range(30):
        add(log, LARGE)

    assert actions(caplog) == ["retire_failed"]
    with reopened(log) as log:
        assert payloads(log, "t") == [LARGE] * 30
        assert not log.damages


# Commits


def test_sync_is_refused_while_a_commit_runs(log: Log) -> None:
    log.append("t", Columns([b"1"]))
    commit = log.begin_commit()
    second = log.append("t", Columns([b"2"]))

    with pytest.raises(Backlogged):
        log.sync()

    assert commit is not None
    assert log.outcome(second.group) == "pending"
    commit.run()
    assert log.end_commit(commit) is None
    log.sync()
    assert log.outcome(second.group) == "synced"
    assert payloads(log, "t") == [b"1", b"2"]


def test_close_is_refused_while_a_commit_runs(log: Log) -> None:
    appended = log.append("t", Columns([b"1"]))
    commit = log.begin_commit()

    with pytest.raises(Backlogged):
        log.close()

    assert commit is not None
    commit.run()
    assert log.end_commit(commit) is None
    assert log.outcome(appended.group) == "synced"
    add(log, b"2")
    assert payloads(log, "t") == [b"1", b"2"]
    log.close()


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("x"), ValueError("x")])
def test_any_exception_of_a_commit_ends_as_a_failed_write(
    log: Log, files: FaultyFiles, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(handle: int, buffers: Sequence[Buffer], position: int) -> int:
        raise error

    first = log.append("t", Columns([b"1"]))
    with monkeypatch.context() as patch:
        patch.setattr(files, "write", fail)
        with pytest.raises(WriteFailed, match=type(error).__name__):
            log.sync()
    second = log.append("t", Columns([b"2"]))
    log.sync()

    assert log.outcome(first.group) == "failed"
    assert log.outcome(second.group) == "synced"
    with reopened(log) as log:
        assert events(log) == [(0, b"2")]


# Truncation


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
@pytest.mark.parametrize(
    ("call", "part", "kept"),
    [
        ("remove", ".seg", 3),
        ("sync_directory", "topics/t-1", 3),
        ("truncate", ".seg", 5),
        ("sync", ".seg", 5),
        ("truncate", ".seg", 7),
    ],
)
def test_truncation_that_cannot_erase_yet_is_done_later(
    log: Log, files: FaultyFiles, call: str, part: str, kept: int, times: int
) -> None:
    """Frames hold 0..4 and 5..9: at 3 the segment goes, behind that it is cut."""
    add(log, *TEN[:5])
    add(log, *TEN[5:])
    log.checkpoint()
    expected = [*enumerate(TEN[:kept]), (kept, b"new")]
    files.fail(call, part, error=errno.EIO, times=times)

    log.truncate("t", kept)
    add(log, b"new")

    assert events(log) == expected
    files.heal()
    log.checkpoint()
    with reopened(log) as log:
        assert events(log) == expected
        assert not log.damages


@pytest.mark.parametrize("skip", range(6))
def test_truncation_cuts_nothing_where_it_cannot_read(
    tmp_path: Path, files: FaultyFiles, skip: int
) -> None:
    log, texts = huge(tmp_path, files)
    files.fail("read", ".seg", error=errno.EIO, skip=skip)

    left = texts[:-1] if done(lambda: log.truncate("t", COUNT - 1)) else texts

    files.heal()
    assert payloads(log, "t") == left
    with reopened(log) as log:
        assert payloads(log, "t") == left


# Compaction


@pytest.mark.parametrize("skip", range(16))
def test_compaction_loses_nothing_where_it_cannot_read(
    tmp_path: Path, files: FaultyFiles, skip: int
) -> None:
    """The first two events have one key, the others one each."""
    log, texts = huge(tmp_path, files)
    log.roll("t")
    log.checkpoint()
    files.fail("read", ".seg", error=errno.EIO, skip=skip)

    done(lambda: log.compact("t"))

    files.heal()
    assert payloads(log, "t") in (texts, texts[1:])
    with reopened(log) as log:
        assert payloads(log, "t") in (texts, texts[1:])


def test_compaction_knows_its_segment_when_the_folder_cannot_be_synced(
    log: Log, files: FaultyFiles
) -> None:
    for text in TEN:
        log.append("t", Columns([text + LARGE], keys=[b"k"]))
        log.commit()
    log.roll("t")
    log.checkpoint()
    files.fail("sync_directory", "topics/t-1", error=errno.EIO)

    with pytest.raises(WriteFailed):
        log.compact("t")

    assert events(log) == [(9, TEN[9] + LARGE)]
    assert not log.damages
    log.close()
    assert verify(log.directory).damages == []


def huge(directory: Path, files: FaultyFiles) -> tuple[Log, list[bytes]]:
    """A checkpointed topic of several reads, nothing of which is in memory."""
    log = Log.open(directory, LogOptions(tail_cache_bytes=0), files=files)
    log.create_topic("t")
    texts = [b"%d" % number + bytes(HUGE) for number in range(COUNT)]
    for number, text in enumerate(texts):
        log.append("t", Columns([text], keys=[b"%d" % max(number, 1)]))
        log.commit()
    log.checkpoint()
    return log, texts


def done(act: Callable[[], object]) -> bool:
    """Whether it was done; if not, it says that it failed."""
    try:
        act()
    except WriteFailed:
        return False
    return True


# Segments and memory


def test_deleted_topics_leave_nothing_in_memory(tmp_path: Path) -> None:
    with Log.open(tmp_path, LogOptions(write_out_bytes=0)) as log:
        for number in range(20):
            log.create_topic(f"t{number}")
            log.append(f"t{number}", Columns([b"x"]))
            log.sync()
            log.delete_topic(f"t{number}")

        assert not log.flusher._cached


def test_a_frame_in_a_payload_is_not_served_when_its_own_is_damaged(log: Log) -> None:
    spoofed = bytes(frame_of(Columns([b"spoofed"], 0), 7000, bytes(16)))
    add(log, spoofed)
    write_out(log)
    add(log, b"after")
    log.close()
    (segment,) = Path(log.directory).glob("topics/*/*.seg")
    flip(segment, segment.read_bytes().find(b"PNSB") + 20)

    with Log.open(log.directory) as log:
        assert events(log) == [(1, b"after")]
        assert len(log.damages) == 1


# Starts and readers


def test_topics_are_found_from_segments_when_all_else_is_gone(log: Log) -> None:
    add(log, *TEN)
    log.close()
    directory = Path(log.directory)
    for path in [*(directory / "checkpoints").iterdir(), *journals(directory)]:
        path.unlink()

    with Reader.open(directory) as reader:
        assert reader.topics() == ["t"]
    with Log.open(directory) as log:
        assert payloads(log, "t") == TEN
        assert log.damages


def test_a_start_on_a_full_disk_tries_to_write_out_once(
    log: Log, files: FaultyFiles
) -> None:
    for _ in range(50):
        add(log, LARGE)
    log.abandon()
    files.fail("write", ".seg", times=1000)

    log = Log.open(log.directory, LogOptions(write_out_bytes=1000), files=files)

    assert files.count("write", ".seg") == 1
    assert payloads(log, "t") == [LARGE] * 50
    log.abandon()


def test_a_reader_of_a_dead_log_syncs_every_journal_file_it_shows(
    tmp_path: Path, files: FaultyFiles
) -> None:
    unsynced(tmp_path)

    with Reader.open(tmp_path, files=files) as reader:
        assert reader.topic("t").end_offset == 6

    synced = {Path(path) for call, path in files.calls if call == "sync"}
    assert synced == set(journals(tmp_path))


def test_a_reader_of_a_dead_log_shows_nothing_that_cannot_be_synced(
    tmp_path: Path, files: FaultyFiles
) -> None:
    unsynced(tmp_path)
    files.fail("sync", journals(tmp_path)[-1].name, error=errno.EIO)

    with pytest.raises(WriteFailed):
        Reader.open(tmp_path, files=files)


def unsynced(directory: Path) -> None:
    """A log whose process died with six events in several unsynced journal files."""
    log = Log.open(directory, TIGHT)
    log.create_topic("t", UNSYNCED)
    log.sync()
    for _ in range(6):
        add(log, LARGE)
    log.abandon()
    assert len(journals(directory)) > 2
