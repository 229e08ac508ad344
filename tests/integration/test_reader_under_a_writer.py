"""A reader keeps its footing while the writer recycles, removes and compacts files.

Nothing here refreshes before it reads, unless it says so: what the reader knows is
out of date, and has to be found out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.errors import OffsetOutOfRange, UnknownTopic
from penstock.files import Files
from penstock.log import Columns, Log, Reader, TopicOptions
from tests.unit.log.scenes import SMALL, TEN, add, segmented


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A log that lives in this process and holds its lock."""
    with Log.open(tmp_path, SMALL) as log:
        log.create_topic("t")
        log.sync()
        yield log


class Interrupted(Files):
    """Lets something happen, once, right before a file is opened."""

    def __init__(self, part: str, event: Callable[[], object]) -> None:
        self.part = part
        self.event: Callable[[], object] | None = event

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        event = self.event
        if event is not None and self.part in path:
            self.event = None
            event()
        return super().open(path, write=write, create=create)


def texts(reader: Reader) -> list[bytes]:
    """All events of topic t, read on from where the last read ended."""
    offset, found = reader.topic("t").start_offset, []
    while batches := reader.read("t", offset):
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


def names(directory: Path, folder: str) -> list[str]:
    return sorted(path.name for path in (directory / folder).iterdir())


def test_reader_follows_over_checkpoints_and_recycled_journal_files(log: Log) -> None:
    expected: list[bytes] = []
    seen = set()
    with Reader.open(log.directory) as reader:
        for _ in range(40):
            expected += fill(log, 3)
            assert reader.refresh()
            seen.update(names(Path(log.directory), "checkpoints"))

            assert texts(reader) == expected

        assert len(seen) > 4
        assert reader.damages == []


def test_checkpoint_alone_is_nothing_new(log: Log) -> None:
    add(log, b"0")
    with Reader.open(log.directory) as reader:
        log.checkpoint()

        assert not reader.refresh()
        assert texts(reader) == [b"0"]


def test_journal_file_that_was_recycled_under_the_reader_is_not_missed(
    log: Log,
) -> None:
    expected = fill(log, 2)
    with Reader.open(log.directory) as reader:
        first = names(Path(log.directory), "journal")[0]
        more = fill(log, 60)
        assert first not in names(Path(log.directory), "journal")

        assert texts(reader) == expected + more
        assert reader.damages == []


def test_journal_files_that_a_closing_writer_removes_are_not_missed(log: Log) -> None:
    expected = fill(log, 2)
    with Reader.open(log.directory) as reader:
        expected += fill(log, 60)
        log.close()

        assert len(names(Path(log.directory), "journal")) < 4
        assert texts(reader) == expected
        assert reader.damages == []


def test_offset_by_time_is_found_although_the_journal_was_recycled(log: Log) -> None:
    add(log, b"0", at_ms=100)
    with Reader.open(log.directory) as reader:
        fill(log, 60)

        assert reader.offset_at("t", 50) == 0


def test_journal_file_that_goes_while_it_is_looked_for_is_looked_for_again(
    log: Log,
) -> None:
    expected = fill(log, 2)
    files = Interrupted(".jnl", lambda: fill(log, 60))

    with Reader.open(log.directory, files=files) as reader:
        reader.refresh()

        assert texts(reader)[:2] == expected
        assert len(texts(reader)) == 62
        assert reader.damages == []


def test_trimmed_events_are_out_of_range_and_no_damage(log: Log) -> None:
    segmented(log)
    with Reader.open(log.directory) as reader:
        log.trim("t", 5)

        with pytest.raises(OffsetOutOfRange) as caught:
            reader.read("t", 0)

        assert caught.value.start == 5
        assert texts(reader) == TEN[5:]
        assert reader.damages == []


def test_retention_under_the_reader_is_no_damage(log: Log) -> None:
    segmented(log)
    log.set_options("t", TopicOptions(retention_bytes=1))
    log.sync()
    with Reader.open(log.directory) as reader:
        log.maintain()

        with pytest.raises(OffsetOutOfRange):
            reader.read("t", 0)

        assert texts(reader) == TEN[8:]
        assert reader.damages == []


def test_truncated_segment_is_no_damage(log: Log) -> None:
    segmented(log)
    with Reader.open(log.directory) as reader:
        log.truncate("t", 6)

        assert texts(reader) == TEN[:6]
        assert reader.damages == []


def test_compaction_under_the_reader_is_no_damage(log: Log) -> None:
    for number in range(4):
        log.append(
            "t", Columns([b"%d" % number] * 3, keys=[b"a", b"b", b"%d" % number])
        )
        log.commit()
    log.checkpoint()
    log.roll("t")
    log.checkpoint()
    with Reader.open(log.directory) as reader:
        log.compact("t")

        assert texts(reader) == [b"0", b"1", b"2", b"3", b"3", b"3"]
        assert reader.damages == []


@pytest.mark.parametrize("again", [False, True])
def test_topic_that_was_deleted_is_unknown_and_no_damage(log: Log, again: bool) -> None:
    segmented(log)
    with Reader.open(log.directory) as reader:
        log.delete_topic("t")

        with pytest.raises(UnknownTopic):
            reader.read("t", 0)

        assert reader.topics() == []
        assert reader.damages == []
        if again:
            log.create_topic("t")
            add(log, b"another")
            reader.refresh()
            assert texts(reader) == [b"another"]
