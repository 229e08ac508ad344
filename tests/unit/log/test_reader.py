from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.errors import Moved, NotADataDirectory, OffsetOutOfRange, UnknownTopic
from penstock.files import Files
from penstock.log import Log, Reader, TopicOptions
from penstock.log.journal.group import FIRST_OWNED
from tests.unit.log.faults import FaultyFiles, flip
from tests.unit.log.scenes import SMALL, TEN, add, ends, filled, journals, segmented


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A log that lives in this process and holds its lock."""
    with Log.open(tmp_path, SMALL) as log:
        log.create_topic("t")
        log.sync()
        yield log


class Short(Files):
    """Reads of some files fall short, each by a byte more than the one before."""

    def __init__(self, suffix: str = "", times: int = 0) -> None:
        self.opened: dict[int, str] = {}
        self._suffix = suffix
        self.times = times
        self._missing = 0

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        handle = super().open(path, write=write, create=create)
        self.opened[handle] = path
        return handle

    def close(self, handle: int) -> None:
        del self.opened[handle]
        super().close(handle)

    def read(self, handle: int, length: int, position: int) -> bytes:
        data = super().read(handle, length, position)
        if not self.times or not self.opened[handle].endswith(self._suffix):
            return data
        self.times -= 1
        self._missing += 1
        return data[: -self._missing]


def texts(reader: Reader, name: str = "t", max_bytes: int = 1 << 20) -> list[bytes]:
    """All events of a topic, read on from where the last read ended."""
    offset, found = reader.topic(name).start_offset, []
    while batches := reader.read(name, offset, max_bytes):
        found += [payload for batch in batches for payload in batch.payloads()]
        offset = batches[-1].end_offset
    return found


def fill(log: Log, count: int) -> list[bytes]:
    """Events in groups of their own, large enough for checkpoints to fall due."""
    start = log.topic("t").next_offset
    added = [b"%0200d" % number for number in range(start, start + count)]
    for text in added:
        add(log, text)
    return added


# Opening


@pytest.mark.parametrize("folders", [[], ["journal"], ["topics"]])
def test_folder_without_a_log_is_refused(tmp_path: Path, folders: list[str]) -> None:
    for name in folders:
        (tmp_path / name).mkdir()

    with pytest.raises(NotADataDirectory) as caught:
        Reader.open(tmp_path)

    assert caught.value.path == str(tmp_path)


def test_reader_of_an_empty_log_finds_no_topics(tmp_path: Path) -> None:
    Log.open(tmp_path).abandon()

    with Reader.open(tmp_path) as reader:
        assert reader.topics() == []
        assert reader.directory == str(tmp_path)
        with pytest.raises(UnknownTopic):
            reader.read("t", 0)


@pytest.mark.parametrize("max_bytes", [1, 500, 1 << 20])
def test_reader_sees_segments_and_journal_as_one(log: Log, max_bytes: int) -> None:
    segmented(log)
    add(log, b"10")
    add(log, b"11", b"12")

    with Reader.open(log.directory) as reader:
        found = texts(reader, max_bytes=max_bytes)

        assert found == [*TEN, b"10", b"11", b"12"]
        assert reader.damages == []
        with pytest.raises(OffsetOutOfRange):
            reader.read("t", 14)


def test_offsets_are_found_by_time_in_segments_and_in_the_journal(log: Log) -> None:
    add(log, b"0", at_ms=100)
    log.checkpoint()
    add(log, b"1", at_ms=200)
    add(log, b"2", at_ms=300)

    with Reader.open(log.directory) as reader:
        found = [reader.offset_at("t", time) for time in (0, 150, 300, 301)]

    assert found == [0, 1, 2, 3]


def test_closed_reader_holds_no_files(log: Log) -> None:
    segmented(log)
    files = Short()

    with Reader.open(log.directory, files=files) as reader:
        assert texts(reader) == TEN
        assert files.opened

    assert not files.opened


# Following


def test_refresh_takes_note_of_events_topics_and_options(log: Log) -> None:
    add(log, b"0")
    with Reader.open(log.directory) as reader:
        add(log, b"1")
        log.create_topic("new")
        log.set_options("t", TopicOptions(compact=True))
        log.sync()
        assert (texts(reader), reader.topics()) == ([b"0"], ["t"])

        assert reader.refresh()

        assert texts(reader) == [b"0", b"1"]
        assert reader.topics() == ["new", "t"]
        assert reader.topic("t").options.compact
        assert not reader.refresh()


def test_journal_position_that_holds_something_else_now_is_looked_up_anew(
    log: Log,
) -> None:
    (text,) = fill(log, 1)
    with Reader.open(log.directory) as reader:
        log.checkpoint()
        (journal,) = journals(Path(log.directory))
        journal.write_bytes(bytes(journal.stat().st_size))

        assert texts(reader) == [text]


# Changes of shape

CHANGES: dict[str, tuple[Callable[[Log], object], list[bytes]]] = {
    "trim": (lambda log: log.trim("t", 5), [*TEN[5:], b"a", b"b"]),
    "truncate in a segment": (lambda log: log.truncate("t", 3), TEN[:3]),
    "truncate behind the checkpoint": (lambda log: log.truncate("t", 11), [*TEN, b"a"]),
    "truncate to nothing": (lambda log: log.truncate("t", 0), []),
    "roll": (lambda log: log.roll("t"), [*TEN, b"a", b"b"]),
}


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize(("change", "left"), CHANGES.values(), ids=CHANGES)
def test_change_of_shape_is_followed(
    log: Log, change: Callable[[Log], object], left: list[bytes], checkpointed: bool
) -> None:
    segmented(log)
    with Reader.open(log.directory) as reader:
        add(log, b"a", b"b")
        reader.refresh()
        change(log)
        add(log, b"next")
        if checkpointed:
            log.checkpoint()

        reader.refresh()

        assert texts(reader) == [*left, b"next"]
        assert reader.topic("t").end_offset == log.topic("t").end_offset
        assert reader.damages == []


def test_deletion_is_followed(log: Log) -> None:
    add(log, b"0")
    with Reader.open(log.directory) as reader:
        log.delete_topic("t")

        reader.refresh()

        assert reader.topics() == []


def test_entries_of_owners_and_of_unknown_topics_are_passed_over(log: Log) -> None:
    add(log, b"0")
    log.intake.enter(FIRST_OWNED, log.topic("t").id, b"record")
    log.intake.enter(FIRST_OWNED, 0, b"record")
    log.sync()
    add(log, b"1")

    with Reader.open(log.directory) as reader:
        assert texts(reader) == [b"0", b"1"]


# Damage is looked at twice


def segment(log: Log, base_offset: int) -> Path:
    return Path(log.topic("t").directory) / f"{base_offset:020}.seg"


def test_damaged_segment_is_reported_once_and_left_out(log: Log) -> None:
    segmented(log)
    path = segment(log, 4)
    flip(path, path.stat().st_size - 9)

    with Reader.open(log.directory) as reader:
        for _ in range(2):
            assert texts(reader) == [*TEN[:6], *TEN[8:]]

            (damage,) = reader.damages
            assert (damage.topic, damage.first_offset, damage.end_offset) == ("t", 6, 8)


def test_known_damage_is_no_reason_to_look_again(log: Log) -> None:
    segmented(log)
    path = segment(log, 4)
    flip(path, path.stat().st_size - 9)
    files = FaultyFiles()
    with Reader.open(log.directory, files=files) as reader:
        loads = files.count("open", ".ckp")
        texts(reader)
        assert files.count("open", ".ckp") > loads
        loads = files.count("open", ".ckp")

        texts(reader)

        assert files.count("open", ".ckp") == loads


def test_what_is_fine_at_the_second_look_is_no_damage(log: Log) -> None:
    segmented(log)
    files = Short(".seg")
    with Reader.open(log.directory, files=files) as reader:
        texts(reader)
        files.times = 1

        assert texts(reader) == TEN
        assert files.times == 0
        assert reader.damages == []


def test_log_that_looks_different_at_every_look_is_given_up(log: Log) -> None:
    log.checkpoint()

    with pytest.raises(Moved) as caught:
        Reader.open(log.directory, files=Short(".ckp", times=1000))

    assert caught.value.path == log.directory


def test_damaged_checkpoint_is_reported_and_the_older_one_does(log: Log) -> None:
    expected = fill(log, 40)
    log.checkpoint()
    newest = max((Path(log.directory) / "checkpoints").iterdir())
    flip(newest, 20)

    with Reader.open(log.directory) as reader:
        assert texts(reader) == expected
        assert [one.file for one in reader.damages] == [f"checkpoints/{newest.name}"]
        assert not reader.refresh()


def test_damaged_group_is_reported_and_what_follows_is_shown(tmp_path: Path) -> None:
    expected = filled(tmp_path, 5)
    (journal,) = journals(tmp_path)
    places = ends(journal)
    flip(journal, places[2] + 150)

    with Reader.open(tmp_path) as reader:
        assert texts(reader) == [*expected[:3], expected[4]]
        assert [one.position for one in reader.damages] == [places[2]]


def test_group_that_is_damaged_while_the_reader_follows_is_reported(log: Log) -> None:
    add(log, b"0")
    with Reader.open(log.directory) as reader:
        (journal,) = journals(Path(log.directory))
        at = ends(journal)[-1]
        add(log, b"1")
        add(log, b"2")
        flip(journal, at + 70)

        assert reader.refresh()

        assert texts(reader) == [b"0", b"2"]
        assert [one.position for one in reader.damages] == [at]


# A writer that is faster than the reader


@pytest.mark.parametrize("times", [1, 5])
def test_checkpoint_that_goes_while_it_is_read_is_looked_for_again(
    log: Log, times: int
) -> None:
    segmented(log)
    files = FaultyFiles()
    files.fail("open", ".ckp", error=errno.ENOENT, times=times)

    with Reader.open(log.directory, files=files) as reader:
        assert texts(reader) == TEN
        assert reader.damages == []


def test_reader_that_never_finds_what_it_looks_for_says_so(log: Log) -> None:
    segmented(log)
    files = FaultyFiles()
    files.fail("open", ".ckp", error=errno.ENOENT, times=1000)

    with pytest.raises(Moved) as caught:
        Reader.open(log.directory, files=files)

    assert caught.value.retriable
    assert caught.value.path == log.directory


@pytest.mark.parametrize("part", [".seg", "position"])
def test_file_that_goes_while_everything_is_looked_up_anew_is_no_loss(
    log: Log, part: str
) -> None:
    segmented(log)
    add(log, b"10")
    files = FaultyFiles()
    with Reader.open(log.directory, files=files) as reader:
        files.fail("open", ".jnl", error=errno.ENOENT)
        files.fail("open", part, error=errno.ENOENT)

        (batch,) = reader.read("t", 10)

        assert batch.payloads() == [b"10"]
        assert reader.damages == []


def test_file_that_goes_while_the_reader_follows_is_looked_for_again(log: Log) -> None:
    files = FaultyFiles()
    with Reader.open(log.directory, files=files) as reader:
        add(log, b"0")
        files.fail("open", "position", error=errno.ENOENT)

        assert reader.refresh()
        assert texts(reader) == [b"0"]


# Lost checkpoints


def without_checkpoints(directory: Path) -> None:
    for path in (directory / "checkpoints").iterdir():
        path.unlink()


def test_whole_journal_gives_everything_without_a_checkpoint(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t", TopicOptions(compact=True))
        segmented(log)
    without_checkpoints(tmp_path)

    with Reader.open(tmp_path) as reader:
        assert texts(reader) == TEN
        assert reader.topic("t").options.compact


def test_topics_are_found_from_their_segments_without_a_checkpoint(
    tmp_path: Path,
) -> None:
    expected = filled(tmp_path, 60, SMALL)
    without_checkpoints(tmp_path)
    (tmp_path / "topics" / "empty-9").mkdir()

    with Reader.open(tmp_path) as reader:
        assert reader.topics() == ["t"]
        assert texts(reader) == expected


def test_batches_follow_one_another_and_hold_on_to_nothing(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t")
        for number in range(5):
            add(log, b"%d" % number)
            log.roll("t")
    with Reader.open(tmp_path) as reader:
        found, held = [], []
        for batch in reader.batches("t", 1, 1):
            found += batch.payloads()
            held.append(sys.getrefcount(batch))

        assert found == [b"1", b"2", b"3", b"4"]
        assert held == [2] * 4  # this loop, and the call that asks
        assert [*reader.batches("t", 5)] == []
        with pytest.raises(OffsetOutOfRange):
            next(reader.batches("t", 6))
