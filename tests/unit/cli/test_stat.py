from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.cli.log import lines_of
from penstock.log import Columns, Log, Reader, Stat, TopicOptions, stat_of


def test_topics_say_what_they_hold(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("a", TopicOptions(retention_bytes=1000))
        log.create_topic("empty")
        for at in (2000, 1000, 3000):
            log.append("a", Columns([b"x", b"y"], at))
            log.commit()
        log.roll("a")
        log.checkpoint()
        log.append("a", Columns([b"z"], 2500))
        log.sync()

        topics = {topic.name: topic for topic in stat(tmp_path).topics}

    a, empty = topics["a"], topics["empty"]
    assert (a.id, a.start_offset, a.end_offset) == (1, 0, 7)
    assert (a.events, a.journal_events, a.segments) == (7, 1, 2)
    assert (a.first_timestamp_ms, a.max_timestamp_ms) == (2000, 3000)
    assert a.options == TopicOptions(retention_bytes=1000)
    assert (empty.events, empty.segments, empty.bytes) == (0, 0, 0)
    assert (empty.first_timestamp_ms, empty.max_timestamp_ms) == (None, None)


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("offset", range(8))
def test_trimmed_events_are_not_counted(
    tmp_path: Path, offset: int, checkpoint: bool
) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("a")
        for _ in range(2):
            log.append("a", Columns([b"x", b"y", b"z"], 5))
            log.sync()
        if checkpoint:
            log.checkpoint()
        log.append("a", Columns([b"last"], 5))
        log.sync()
        log.trim("a", offset)

        (topic,) = stat(tmp_path).topics

    assert (topic.start_offset, topic.events) == (offset, 7 - offset)


def test_the_directory_says_who_writes_it(tmp_path: Path) -> None:
    with Log.open(tmp_path):
        living = stat(tmp_path)
    closed = stat(tmp_path)

    assert living.writer_pid == os.getpid()
    assert closed.writer_pid is None


def test_journal_and_checkpoints_are_counted(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("a")
        before = stat(tmp_path)
    after = stat(tmp_path)

    sizes = [path.stat().st_size for path in (tmp_path / "journal").iterdir()]
    assert (before.checkpoint_position, before.checkpoints) == (None, 0)
    assert (after.checkpoint_position, after.checkpoints) == (after.synced_position, 1)
    assert (after.journal.files, after.journal.bytes) == (len(sizes), sum(sizes))


def test_quarantined_ranges_are_listed(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("a")
        log.append("a", Columns([b"x" * 100], 5))
    (segment,) = tmp_path.glob("topics/*/*.seg")
    data = bytearray(segment.read_bytes())
    data[-20] ^= 1
    segment.write_bytes(data)
    Log.open(tmp_path).close()

    found = stat(tmp_path)

    assert [one.topic for one in found.quarantined] == ["a"]
    assert "frame fails its checksum" in "\n".join(lines_of(found))


def test_people_get_a_table(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("orders", TopicOptions(compact=True))
        log.append("orders", Columns([b"x"], 1_700_000_000_000))

    lines = list(lines_of(stat(tmp_path)))

    assert lines[1] == "writer      none"
    assert lines[-2].split()[:4] == ["TOPIC", "ID", "OFFSETS", "EVENTS"]
    assert lines[-1].split()[:5] == ["orders", "1", "0..1", "1", "1"]
    assert lines[-1].endswith("compact=True")


def test_a_directory_without_topics_has_no_table(tmp_path: Path) -> None:
    Log.open(tmp_path).close()

    assert list(lines_of(stat(tmp_path)))[-1] == "topics      0"


def stat(directory: Path) -> Stat:
    with Reader.open(directory) as reader:
        return stat_of(reader)
