from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import pytest

from penstock.errors import UnownedRecords
from penstock.log import Columns, Log, LogOptions, TopicOptions
from penstock.log.journal import HEADER_BYTES
from tests.unit.log.faults import Counter, flip, offsets, payloads

SMALL = LogOptions(
    journal_file_bytes=4096,
    checkpoint_bytes=4096,
    write_out_bytes=1024,
    tail_cache_bytes=1024,
)


def filled(
    directory: Path, count: int, options: LogOptions | None = None
) -> list[bytes]:
    """A log of events in groups of their own that was not closed."""
    log = Log.open(directory, options)
    log.create_topic("t")
    texts = [b"%0200d" % number for number in range(count)]
    for text in texts:
        log.append("t", Columns([text]))
        log.commit()
    log.abandon()
    return texts


def journals(directory: Path) -> list[Path]:
    return sorted((directory / "journal").iterdir())


def ends(path: Path) -> list[int]:
    """Where the groups of a journal file end."""
    data = path.read_bytes()
    places, at = [], HEADER_BYTES
    while data[at : at + 4] == b"PNSJ":
        at += int.from_bytes(data[at + 8 : at + 12], "little")
        places.append(at)
    return places


# Torn tails


@pytest.mark.parametrize("lost", [1, 8, 100, 300])
def test_torn_tail_is_cut_and_reported_with_file_position_and_bytes(
    tmp_path: Path, lost: int, caplog: pytest.LogCaptureFixture
) -> None:
    texts = filled(tmp_path, 5)
    (tmp_path / "position").unlink()
    (journal,) = journals(tmp_path)
    places = ends(journal)
    os.truncate(journal, places[-1] - lost)

    log = Log.open(tmp_path)

    (cut,) = log.report.cuts
    assert payloads(log, "t") == texts[:4]
    assert cut.file == "journal/00000000000000000000.jnl"
    assert cut.position == places[-2]
    assert cut.length == places[-1] - places[-2] - lost
    assert [
        getattr(r, "action", "") for r in caplog.records if r.levelno >= logging.WARNING
    ] == ["tail_cut"]
    assert log.append("t", Columns([b"next"])).base_offset == 4
    log.close()


@pytest.mark.parametrize(
    "tail", [bytes(64), bytes(5000), b"PNSJ\1" + bytes(91), b"\xff" * 77, b"x"]
)
def test_whatever_hangs_behind_the_last_group_is_cut(
    tmp_path: Path, tail: bytes
) -> None:
    texts = filled(tmp_path, 3)
    (journal,) = journals(tmp_path)
    whole = journal.stat().st_size
    with journal.open("ab") as file:
        file.write(tail)

    log = Log.open(tmp_path)

    assert payloads(log, "t") == texts
    assert [(c.position, c.length) for c in log.report.cuts] == [(whole, len(tail))]
    assert log.report.damages == []
    assert journal.stat().st_size == whole
    log.close()


def test_torn_group_hides_whole_ones_that_follow_it(tmp_path: Path) -> None:
    texts = filled(tmp_path, 1)
    (tmp_path / "position").unlink()
    log = Log.open(tmp_path)
    log.set_options("t", TopicOptions(durability="os"))
    log.sync()
    for number in range(3):
        log.append("t", Columns([b"%d" % number]))
        log.commit()
    journal = journals(tmp_path)[-1]
    log.abandon()
    flip(journal, ends(journal)[0] + 70)

    log = Log.open(tmp_path)

    assert payloads(log, "t") == texts
    assert len(log.report.cuts) == 1
    log.close()


def test_cut_is_reported_once(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    (journal,) = journals(tmp_path)
    with journal.open("ab") as file:
        file.write(b"junk")
    Log.open(tmp_path).abandon()

    log = Log.open(tmp_path)

    assert log.report.cuts == []
    log.close()


# Damage


def test_flipped_bit_in_a_confirmed_group_is_damage_and_the_rest_is_kept(
    tmp_path: Path,
) -> None:
    texts = filled(tmp_path, 5)
    (journal,) = journals(tmp_path)
    places = ends(journal)
    flip(journal, places[2] + 150)

    log = Log.open(tmp_path)

    gap, damage = sorted(log.report.damages, key=lambda damage: damage.file)
    assert (damage.position, damage.length) == (places[2], places[3] - places[2])
    assert (gap.topic, gap.first_offset, gap.end_offset) == ("t", 3, 4)
    assert payloads(log, "t") == [*texts[:3], texts[4]]
    assert offsets(log, "t") == [0, 1, 2, 4]
    copies = [path.name for path in (tmp_path / "quarantine").iterdir()]
    assert f"journal_00000000000000000000.jnl@{places[2]}.bin" in copies
    log.close()


def test_damaged_last_group_that_was_synced_is_damage_not_a_tail(
    tmp_path: Path,
) -> None:
    texts = filled(tmp_path, 3)
    (journal,) = journals(tmp_path)
    flip(journal, ends(journal)[-2] + 150)

    log = Log.open(tmp_path)

    assert payloads(log, "t") == texts[:2]
    assert log.report.cuts == []
    assert len(log.report.damages) == 1
    log.append("t", Columns([b"next"]))
    log.sync()
    log.abandon()
    log = Log.open(tmp_path)
    assert payloads(log, "t") == [*texts[:2], b"next"]
    log.close()


def test_damage_in_a_topics_creation_gives_the_topic_another_name(
    tmp_path: Path,
) -> None:
    texts = filled(tmp_path, 3)
    (journal,) = journals(tmp_path)
    flip(journal, HEADER_BYTES + 100)

    log = Log.open(tmp_path)

    assert log.topics() == ["recovered-1"]
    assert payloads(log, "recovered-1") == texts[1:]
    log.close()


def test_flipped_bit_in_a_segment_is_found_on_start(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t")
        for number in range(3):
            log.append("t", Columns([b"%0100d" % number]))
            log.commit()
        directory = Path(log.topic("t").directory)
    (segment,) = directory.glob("*.seg")
    flip(segment, segment.stat().st_size // 2)

    log = Log.open(tmp_path)

    (damage,) = log.damages
    assert damage.file == f"topics/t-1/{segment.name}"
    assert (damage.first_offset, damage.end_offset) == (1, 2)
    assert offsets(log, "t") == [0, 2]
    log.close()


def test_lost_segment_of_a_topic_is_reported(tmp_path: Path) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t")
        log.append("t", Columns([b"a"]))
        log.roll("t")
        log.append("t", Columns([b"b"]))
        directory = Path(log.topic("t").directory)
    sorted(directory.glob("*.seg"))[1].unlink()

    log = Log.open(tmp_path)

    assert [(d.topic, d.first_offset, d.end_offset) for d in log.damages] == [
        ("t", 1, 2)
    ]
    assert log.append("t", Columns([b"next"])).base_offset == 2
    log.commit()
    assert offsets(log, "t") == [0, 2]
    log.close()


def test_lost_journal_file_is_reported_and_the_rest_is_kept(tmp_path: Path) -> None:
    options = LogOptions(journal_file_bytes=1024)
    texts = filled(tmp_path, 9, options)
    files = journals(tmp_path)
    assert len(files) > 3
    files[1].unlink()

    log = Log.open(tmp_path)

    found = payloads(log, "t")
    assert found[0] == texts[0]
    assert found[-1] == texts[-1]
    assert 0 < len(found) < 9
    gap = log.report.damages[0]
    assert (gap.topic, gap.first_offset) == ("t", 1)
    log.close()


def test_damaged_journal_file_header_is_made_up_from_its_groups(
    tmp_path: Path,
) -> None:
    texts = filled(tmp_path, 3)
    (journal,) = journals(tmp_path)
    flip(journal, 20)

    log = Log.open(tmp_path)

    assert payloads(log, "t") == texts
    assert [d.reason for d in log.report.damages] == [
        "journal file header fails its checksum"
    ]
    log.close()


# Checkpoints lost


def test_damaged_checkpoint_is_made_up_for_by_the_one_before(tmp_path: Path) -> None:
    texts = filled(tmp_path, 100, SMALL)
    newest = sorted((tmp_path / "checkpoints").iterdir())[-1]
    flip(newest, 30)

    log = Log.open(tmp_path, SMALL)

    assert payloads(log, "t") == texts
    assert [d.file for d in log.report.damages] == [f"checkpoints/{newest.name}"]
    log.close()


def test_lost_checkpoints_are_made_up_for_by_segments_and_journal(
    tmp_path: Path,
) -> None:
    texts = filled(tmp_path, 100, SMALL)
    shutil.rmtree(tmp_path / "checkpoints")

    log = Log.open(tmp_path, SMALL)

    assert payloads(log, "t") == texts
    assert any("no checkpoint is left" in d.reason for d in log.report.damages)
    log.close()


def test_lost_checkpoints_of_a_closed_log_are_made_up_for(tmp_path: Path) -> None:
    texts = filled(tmp_path, 100, SMALL)
    Log.open(tmp_path, SMALL).close()
    shutil.rmtree(tmp_path / "checkpoints")

    log = Log.open(tmp_path, SMALL)

    assert payloads(log, "t") == texts
    log.close()


def test_spare_journal_file_from_the_beginning_does_not_pass_for_a_whole_journal(
    tmp_path: Path,
) -> None:
    options = LogOptions(journal_file_bytes=1024, checkpoint_bytes=4096)
    log = Log.open(tmp_path, options)
    log.create_topic("t")
    texts: list[bytes] = []
    while not has_gap(tmp_path):
        texts.append(b"%0200d" % len(texts))
        log.append("t", Columns([texts[-1]]))
        log.commit()
    log.abandon()
    assert journals(tmp_path)[0].name.startswith("0" * 20)
    shutil.rmtree(tmp_path / "checkpoints")

    log = Log.open(tmp_path, options)

    found = payloads(log, "t")
    assert len(found) == len(texts), "confirmed events are gone"
    assert found == texts
    log.close()


def has_gap(directory: Path) -> bool:
    """Whether some journal file is not where its predecessor ends."""
    files = journals(directory)
    starts = [int(path.name[:20]) for path in files]
    stops = [
        start + ends(p)[-1] - HEADER_BYTES
        for start, p in zip(starts, files, strict=True)
    ]
    return any(a != b for a, b in zip(stops, starts[1:], strict=False))


def test_first_checkpoint_lost_is_made_up_for_by_the_whole_journal(
    tmp_path: Path,
) -> None:
    log = Log.open(tmp_path)
    log.create_topic("t", TopicOptions(compact=True))
    log.append("t", Columns([b"a"]))
    log.checkpoint()
    log.append("t", Columns([b"b"]))
    log.sync()
    log.abandon()
    shutil.rmtree(tmp_path / "checkpoints")

    log = Log.open(tmp_path)

    assert payloads(log, "t") == [b"a", b"b"]
    assert log.topic("t").options.compact
    assert log.report.damages == []
    log.close()


def test_topic_found_from_segments_is_the_newer_of_two_of_its_name(
    tmp_path: Path,
) -> None:
    filled(tmp_path, 100, SMALL)
    with Log.open(tmp_path, SMALL) as log:
        old = Path(log.topic("t").directory)
        shutil.copytree(old, tmp_path / "copy")
        log.delete_topic("t")
        log.create_topic("t")
        log.append("t", Columns([b"new"]))
    shutil.move(tmp_path / "copy", old)
    shutil.rmtree(tmp_path / "checkpoints")

    log = Log.open(tmp_path, SMALL)

    assert payloads(log, "t") == [b"new"]
    log.close()


# Owners


def test_records_are_replayed_to_their_owner_in_order(tmp_path: Path) -> None:
    log = Log.open(tmp_path, owners={300: Counter()})
    groups = [log.record(300, bytes([number])) for number in (1, 2)]
    log.sync()
    groups.append(log.record(300, b"\3"))
    log.sync()
    log.abandon()
    owner = Counter()

    log = Log.open(tmp_path, owners={300: owner})

    assert [record.data for record in owner.replayed] == [b"\1", b"\2", b"\3"]
    assert [record.group for record in owner.replayed] == groups
    assert {record.kind for record in owner.replayed} == {300}
    assert (owner.restored, log.report.records) == ([], 3)
    log.close()


def test_checkpoint_carries_the_snapshot_and_only_later_records_are_replayed(
    tmp_path: Path,
) -> None:
    owner = Counter()
    log = Log.open(tmp_path, owners={300: owner})
    owner.total = 5
    log.record(300, b"\5")
    log.checkpoint()
    owner.total = 12
    log.record(300, b"\7")
    log.sync()
    log.abandon()
    owner = Counter()

    log = Log.open(tmp_path, owners={300: owner})

    assert owner.restored == [b"5"]
    assert [record.data for record in owner.replayed] == [b"\7"]
    assert owner.total == 12
    log.close()


def test_checkpoint_by_the_way_holds_all_records_of_its_group_and_none_behind(
    tmp_path: Path,
) -> None:
    owner = Counter()
    log = Log.open(tmp_path, LogOptions(checkpoint_bytes=1024), owners={300: owner})
    for _ in range(50):
        for _ in range(3):
            owner.total += 1
            log.record(300, b"\1" + bytes(99))
        commit = log.begin_commit()
        owner.total += 1
        log.record(300, b"\1")
        assert commit is not None
        commit.run()
        log.end_commit(commit)
        if (work := log.begin_store()) is not None:
            work.run()
            log.end_store(work)
    log.sync()
    log.abandon()
    after = Counter()

    log = Log.open(tmp_path, owners={300: after})

    assert log.report.checkpoint_position > 0
    assert after.total == owner.total == 200
    log.close()


@pytest.mark.parametrize("stored", [False, True])
def test_records_without_their_owner_stop_the_start(
    tmp_path: Path, stored: bool
) -> None:
    log = Log.open(tmp_path, owners={300: Counter()})
    log.record(300, b"\1")
    log.sync()
    if stored:
        log.checkpoint()
    log.abandon()

    with pytest.raises(UnownedRecords, match="kind 300"):
        Log.open(tmp_path)

    Log.open(tmp_path, owners={300: Counter()}).close()


# What the report counts


def test_report_counts_what_was_replayed(tmp_path: Path) -> None:
    filled(tmp_path, 4)

    log = Log.open(tmp_path)

    (journal,) = journals(tmp_path)
    size = ends(journal)[-1] - HEADER_BYTES
    assert (log.report.groups, log.report.journal_bytes) == (4, size)
    assert (log.report.checkpoint_position, log.report.end_position) == (0, size)
    log.close()


def test_groups_are_numbered_on_after_a_restart(tmp_path: Path) -> None:
    log = Log.open(tmp_path)
    log.create_topic("t")
    last = log.append("t", Columns([b"a"])).group
    log.sync()
    log.abandon()

    log = Log.open(tmp_path)

    assert log.append("t", Columns([b"b"])).group > last
    log.close()


def test_long_journal_is_replayed_in_bounded_memory(tmp_path: Path) -> None:
    texts = filled(tmp_path, 50)

    log = Log.open(tmp_path, LogOptions(write_out_bytes=1024, tail_cache_bytes=0))

    assert log.keeper.unwritten_bytes <= 1024
    assert payloads(log, "t") == texts
    log.close()


def test_everything_a_topic_went_through_is_replayed(tmp_path: Path) -> None:
    log = Log.open(tmp_path)
    log.create_topic("t")
    log.append("t", Columns([b"%d" % n for n in range(10)]))
    log.commit()
    log.truncate("t", 7)
    log.trim("t", 2)
    log.set_options("t", TopicOptions(compact=True))
    log.create_topic("gone")
    log.append("gone", Columns([b"a"]))
    log.commit()
    log.delete_topic("gone")
    log.abandon()

    log = Log.open(tmp_path)

    assert payloads(log, "t") == [b"2", b"3", b"4", b"5", b"6"]
    assert log.topics() == ["t"]
    assert log.topic("t").options.compact
    log.close()
