"""What topics cost that are quiet: counted, not timed."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import DiskFull
from penstock.log import Columns, Log, LogOptions, Reader, TopicOptions, core, flusher
from penstock.log.layout import segment_file
from penstock.log.scrub import SEGMENT_BYTES
from tests.effort import DEEP
from tests.unit.log.faults import FaultyFiles, payloads

TOPICS = 100_000 if DEEP else 1_000
# A few frames stay in memory for readers; what is left is what quiet topics take.
OPTIONS = LogOptions(tail_cache_bytes=0, start_check_bytes=16 * SEGMENT_BYTES)
BYTES_A_TOPIC = 1024


def name_of(number: int) -> str:
    return f"devices/{number}/temperature"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A closed log of topics with an event of 100 bytes each."""
    with Log.open(tmp_path, OPTIONS) as log:
        made(log, TOPICS)
    return tmp_path


@pytest.fixture
def measured() -> Iterator[None]:
    gc.collect()
    tracemalloc.start()
    yield
    tracemalloc.stop()


def made(log: Log, count: int) -> None:
    options = TopicOptions()
    for first in range(0, count, 200):
        names = [name_of(number) for number in range(first, first + 200)]
        events = Columns([b"%-100d" % number for number in range(first, first + 200)])
        log.append_rows(names, events, create=dict.fromkeys(names, options))
        log.commit()


def held() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def test_quiet_topic_takes_less_than_a_kibibyte_when_it_is_written_out(
    tmp_path: Path, measured: None
) -> None:
    log = Log.open(tmp_path, OPTIONS)
    before = held()

    made(log, TOPICS)
    log.checkpoint()

    assert (held() - before) / TOPICS < BYTES_A_TOPIC
    assert payloads(log, name_of(7)) == [b"%-100d" % 7]
    log.close()


def test_quiet_topic_takes_less_than_a_kibibyte_after_a_start(
    directory: Path, measured: None
) -> None:
    before = held()

    log = Log.open(directory, OPTIONS)

    assert (held() - before) / TOPICS < BYTES_A_TOPIC
    log.close()


def test_topics_that_were_read_are_quiet_again(directory: Path, measured: None) -> None:
    log = Log.open(directory, OPTIONS)
    before = held()

    for number in range(0, TOPICS, 2):
        assert payloads(log, name_of(number)) == [b"%-100d" % number]

    # Some files of those that were read last stay open.
    assert (held() - before) / TOPICS < BYTES_A_TOPIC / 4
    log.close()


def test_start_looks_into_no_folder_of_a_quiet_topic(directory: Path) -> None:
    files = FaultyFiles()

    log = Log.open(directory, OPTIONS, files=files)

    assert files.count("list", "/topics/") == 0
    assert 0 < files.count("open", "/topics/") <= 16  # verified, newest first
    log.abandon()


def test_start_after_a_crash_looks_into_the_folders_of_few(directory: Path) -> None:
    log = Log.open(directory, OPTIONS)
    log.append(name_of(3), Columns([b"a"]))
    log.commit()
    log.abandon()
    files = FaultyFiles()

    log = Log.open(directory, OPTIONS, files=files)
    before = files.count("list", "/topics/")
    log.checkpoint()

    assert (before, files.count("list", "/topics/")) == (0, 1)
    assert payloads(log, name_of(3)) == [b"%-100d" % 3, b"a"]
    log.close()


def test_reader_of_another_process_looks_into_no_folder_either(directory: Path) -> None:
    files = FaultyFiles()

    with Reader.open(directory, files=files) as reader:
        opened = files.count("open", "/topics/"), files.count("list", "/topics/")
        found = reader.read(name_of(5), 0)

    assert opened == (0, 0)
    assert found[0].payloads() == [b"%-100d" % 5]


def test_checkpoint_touches_the_folders_of_those_that_changed(directory: Path) -> None:
    files = FaultyFiles()
    log = Log.open(directory, OPTIONS, files=files)
    log.append(name_of(3), Columns([b"a"]))
    before = len([path for _, path in files.calls if "/topics/" in path])

    log.checkpoint()

    touched = [path for _, path in files.calls if "/topics/" in path][before:]
    assert {path for path in touched if "devices-3-" not in path} == set()
    log.close()


def test_round_of_upkeep_visits_topics_that_ask_for_it(directory: Path) -> None:
    log = Log.open(directory, OPTIONS)
    asked = log.wants_upkeep
    log.set_options(name_of(2), TopicOptions(retention_bytes=1))
    log.commit()

    visited = [topic.name for topic in log.catalog.kept_up]

    assert (asked, log.wants_upkeep, visited) == (False, True, [name_of(2)])
    log.set_options(name_of(2), TopicOptions())
    log.commit()
    assert not log.wants_upkeep
    log.close()


# Writing out, some topics at a time


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many topics are written out at once."""
    monkeypatch.setattr(flusher, "MAX_TOPICS", 3)
    monkeypatch.setattr(core, "MAX_TOPICS", 3)
    return 3


def test_write_out_is_of_some_topics_that_waited_for_longest(
    tmp_path: Path, few: int
) -> None:
    log = Log.open(tmp_path, LogOptions(write_out_bytes=30_000))
    made(log, 200)  # its commit has written out the first of them
    first, second = (log.topic(name_of(number)) for number in (few, few + 1))
    work = log.begin_store()
    assert work is not None
    log.append(first.name, Columns([b"a"]))  # while that is under way
    commit = log.begin_commit()
    assert commit is not None
    commit.run()
    log.end_commit(commit)
    work.run()
    log.end_store(work)

    assert first.unwritten_bytes > 0
    assert list(log.flusher._waiting)[-1] == first.id
    assert second.unwritten_bytes == 0
    assert log.flusher.crowded
    while (work := log.begin_store()) is not None:
        work.run()
        log.end_store(work)
    assert log.unwritten_bytes <= 30_000
    log.close()


def test_checkpoint_waits_until_few_topics_do_but_not_for_ever(
    tmp_path: Path, few: int
) -> None:
    options = LogOptions(checkpoint_bytes=100_000, write_out_bytes=1 << 20)
    log = Log.open(tmp_path, options)
    made(log, 200)  # of 100 bytes each, and about 250 of their making
    while log.position < 100_000:
        log.append(name_of(1), Columns([bytes(5000)]))
        log.commit()
    before = log.report.checkpoint_position, checkpoints_of(tmp_path)
    turns = 0
    while not checkpoints_of(tmp_path):
        log.append(name_of(1), Columns([b"a"]))
        log.commit()
        turns += 1

    # Three topics a turn, and then the checkpoint.
    assert before == (0, 0)
    assert 200 // few - 10 < turns < 200 // few + 10
    assert log.position < 2 * 100_000

    made_again = Columns([b"b"] * 200)
    log.append_rows([name_of(number) for number in range(200)], made_again)
    log.append(name_of(1), Columns([bytes(300_000)]))
    log.commit()
    log.append(name_of(1), Columns([b"c"]))
    log.commit()

    assert checkpoints_of(tmp_path) == 2  # overdue: all are written out at once
    assert not log.flusher.crowded
    log.close()


def test_write_out_that_failed_is_not_begun_anew_as_many_topics_wait(
    tmp_path: Path, few: int
) -> None:
    options = LogOptions(checkpoint_bytes=100_000, write_out_bytes=1 << 20)
    files = FaultyFiles()
    log = Log.open(tmp_path, options, files=files)
    made(log, 200)
    files.fail("create", "/topics/", times=1 << 30)
    while files.count("create", "/topics/") == 0:
        log.append(name_of(1), Columns([bytes(5000)]))
        log.commit()
    tried = files.count("create", "/topics/")
    for _ in range(10):
        log.append(name_of(1), Columns([b"a"]))
        log.commit()
    state = log.flusher.error, log.flusher.crowded

    assert (type(state[0]), state[1]) == (DiskFull, True)
    assert tried == files.count("create", "/topics/") <= few
    assert log.begin_store() is None

    files.heal()
    log.append(name_of(1), Columns([bytes(300_000)]))
    log.commit()
    log.append(name_of(1), Columns([b"c"]))
    log.commit()

    assert log.flusher.error is None
    assert not log.flusher.crowded
    assert payloads(log, name_of(7)) == [b"%-100d" % 7]
    log.close()


def checkpoints_of(directory: Path) -> int:
    return len(list(directory.glob("checkpoints/*.ckp")))


def test_start_after_a_crash_writes_out_nothing_that_memory_may_hold(
    tmp_path: Path,
) -> None:
    log = Log.open(tmp_path, LogOptions(write_out_bytes=1 << 20))
    made(log, 200)
    log.abandon()
    files = FaultyFiles()

    log = Log.open(tmp_path, LogOptions(write_out_bytes=20_000), files=files)

    assert 20_000 < log.unwritten_bytes < 40_000
    assert files.count("create", "/topics/") == 0
    log.abandon()


# What a crash left in the folder of a topic that nobody has looked into since


def test_what_lies_behind_the_end_is_gone_before_anything_is_written(
    tmp_path: Path,
) -> None:
    log = quiet(tmp_path)
    topic = log.topic("t")
    active = Path(topic.segments[0].path)
    length = active.stat().st_size
    log.abandon()
    with active.open("ab") as file:
        file.write(active.read_bytes()[-40:])
    stale = Path(segment_file(topic.directory, 3))
    stale.write_bytes(b"of a life that was not synced")
    (active.parent / "0.tmp").write_bytes(b"")

    log = Log.open(tmp_path, OPTIONS)
    assert payloads(log, "t") == [b"0", b"1"]
    log.append("t", Columns([b"2"]))
    log.checkpoint()

    assert sorted(path.name for path in active.parent.iterdir()) == [active.name]
    assert active.stat().st_size > length
    log.roll("t")
    log.append("t", Columns([b"3"]))
    log.close()
    with Log.open(tmp_path, OPTIONS) as log:
        assert payloads(log, "t") == [b"0", b"1", b"2", b"3"]
        assert list(log.damages) == []


def test_segment_that_is_lost_does_not_grow(tmp_path: Path) -> None:
    log = quiet(tmp_path)
    active = Path(log.topic("t").segments[0].path)
    log.abandon()
    active.unlink()

    log = Log.open(tmp_path, OPTIONS)
    log.append("t", Columns([b"2"]))
    log.checkpoint()

    bases = [segment.base_offset for segment in log.topic("t").segments]
    assert bases == [0, 2]
    assert payloads(log, "t") == [b"2"]
    log.close()


def test_start_on_a_whole_journal_leaves_folders_for_whoever_writes(
    tmp_path: Path,
) -> None:
    log = Log.open(tmp_path, LogOptions(write_out_bytes=1000))
    made(log, 200)
    while (work := log.begin_store()) is not None:
        work.run()
        log.end_store(work)
    log.abandon()
    (tmp_path / "topics" / "stranger-9999").mkdir()
    before = {path.name for path in (tmp_path / "topics").iterdir()}
    files = FaultyFiles()

    log = Log.open(tmp_path, files=files)

    left = {path.name for path in (tmp_path / "topics").iterdir()}
    assert before - left == {"stranger-9999"}
    assert files.count("list", "/topics/") == 1  # of all folders
    log.checkpoint()
    for number in range(0, 200, 7):
        assert payloads(log, name_of(number)) == [b"%-100d" % number]
    log.close()


def test_folder_that_cannot_be_looked_into_holds_up_its_write_out_alone(
    tmp_path: Path,
) -> None:
    quiet(tmp_path).abandon()
    files = FaultyFiles()
    log = Log.open(tmp_path, OPTIONS, files=files)
    log.append("t", Columns([b"2"]))
    log.commit()
    files.fail("list", "/topics/t-", times=1)

    work = log.flusher.begin_write_out(log.now_ms())
    work.run()
    log.end_store(work)

    assert work.error is not None
    assert payloads(log, "t") == [b"0", b"1", b"2"]
    log.checkpoint()
    assert log.unwritten_bytes == 0
    assert payloads(log, "t") == [b"0", b"1", b"2"]
    log.close()


def quiet(directory: Path) -> Log:
    """A topic of two events that a checkpoint knows, opened anew."""
    with Log.open(directory, OPTIONS) as log:
        log.create_topic("t")
        log.append("t", Columns([b"0", b"1"]))
    return Log.open(directory, OPTIONS)


def test_busy_topics_that_have_files_are_not_written_out_at_every_turn(
    tmp_path: Path, few: int
) -> None:
    options = LogOptions(checkpoint_bytes=100_000, write_out_bytes=1 << 20)
    files = FaultyFiles()
    log = Log.open(tmp_path, options, files=files)
    names = [name_of(number) for number in range(4 * few)]
    made(log, len(names))
    log.checkpoint()
    written = files.count("write", ".seg")
    events = Columns([b"e"] * len(names))
    begun = log.position
    while log.position < begun + 300_000:
        log.append_rows(names, events)
        log.commit()

    # By checkpoints alone, each with what came since the one before.
    assert files.count("write", ".seg") - written <= 3 * len(names)
    log.close()


def test_new_topics_behind_a_quiet_write_out_are_not_made_in_one_piece(
    tmp_path: Path, few: int
) -> None:
    log = Log.open(tmp_path, LogOptions(write_out_bytes=1 << 20))
    made(log, 200)
    log.checkpoint()
    names = [name_of(number) for number in range(200)]
    log.append_rows(names, Columns([b"e"] * 200))
    log.commit()
    crowded = [log.flusher.crowded]
    log.checkpoint()  # which makes no file
    for number in range(few + 1):
        log.create_topic(f"new {number}")
        log.append(f"new {number}", Columns([b"e"]))
        log.commit()
        crowded.append(log.flusher.crowded)

    assert crowded == [False] * (few + 1) + [True]
    log.checkpoint()
    assert not log.flusher.crowded
    log.close()
