"""A reader shows what is synced; of a writer that is dead, all that it left."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.log import Columns, Log, Reader, TopicOptions
from tests.unit.log.faults import FaultyFiles
from tests.unit.log.scenes import SMALL, add, ends, filled, journals
from tests.unit.log.test_lock import holder

UNSYNCED = TopicOptions(durability="os")


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    """A log that lives in this process and holds its lock."""
    with Log.open(tmp_path, SMALL) as log:
        log.create_topic("t")
        log.sync()
        yield log


def texts(reader: Reader, name: str = "t") -> list[bytes]:
    """All events of a topic, which are few."""
    return [payload for batch in reader.read(name, 0) for payload in batch.payloads()]


def test_reader_writes_nothing(tmp_path: Path) -> None:
    filled(tmp_path, 20, SMALL)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}

    with Reader.open(tmp_path) as reader:
        texts(reader)
        reader.refresh()

    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_unsynced_events_are_not_shown_while_the_writer_lives(log: Log) -> None:
    log.create_topic("os", UNSYNCED)
    log.sync()
    log.append("os", Columns([b"0"]))
    log.commit()
    with Reader.open(log.directory) as reader:
        assert reader.topic("os").end_offset == 0
        assert not reader.refresh()

        log.sync()

        assert reader.refresh()
        assert texts(reader, "os") == [b"0"]


def unsynced(directory: Path) -> None:
    """One synced event and one that is not, left by a crash."""
    log = Log.open(directory)
    log.create_topic("t", UNSYNCED)
    add(log, b"synced")
    log.sync()
    add(log, b"written")
    log.abandon()


def test_writer_in_another_process_hides_what_it_has_not_synced(
    tmp_path: Path,
) -> None:
    unsynced(tmp_path)

    with holder(str(tmp_path / "lock")) as child, Reader.open(tmp_path) as reader:
        assert texts(reader) == [b"synced"]
        child.kill()
        child.wait()

        assert reader.refresh()
        assert texts(reader) == [b"synced", b"written"]


def test_held_log_without_a_position_file_shows_its_checkpoint_only(log: Log) -> None:
    add(log, b"0")
    log.checkpoint()
    add(log, b"1")
    (Path(log.directory) / "position").unlink()

    with Reader.open(log.directory) as reader:
        assert texts(reader) == [b"0"]


def test_events_a_dead_writer_left_are_synced_before_they_are_shown(
    tmp_path: Path,
) -> None:
    unsynced(tmp_path)
    files = FaultyFiles()

    with Reader.open(tmp_path, files=files) as reader:
        assert files.count("sync", ".jnl") == 1
        assert texts(reader) == [b"synced", b"written"]


def test_writer_that_lives_is_not_synced_for(log: Log) -> None:
    add(log, b"0")
    files = FaultyFiles()

    with Reader.open(log.directory, files=files):
        assert files.count("sync") == 0


def test_disk_that_is_read_only_is_read_all_the_same(tmp_path: Path) -> None:
    unsynced(tmp_path)
    files = FaultyFiles()
    files.fail("sync", error=errno.EROFS)

    with Reader.open(tmp_path, files=files) as reader:
        assert texts(reader) == [b"synced", b"written"]


def test_torn_tail_is_not_shown_and_no_damage(tmp_path: Path) -> None:
    expected = filled(tmp_path, 3)
    (tmp_path / "position").unlink()
    (journal,) = journals(tmp_path)
    os.truncate(journal, ends(journal)[-1] - 8)

    with Reader.open(tmp_path) as reader:
        assert texts(reader) == expected[:2]
        assert reader.damages == []


def test_missing_folder_of_checkpoints_is_like_an_empty_one(tmp_path: Path) -> None:
    expected = filled(tmp_path, 3)
    (tmp_path / "checkpoints").rmdir()

    with Reader.open(tmp_path) as reader:
        assert texts(reader) == expected
