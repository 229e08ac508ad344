from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from penstock.errors import WriteFailed
from penstock.log import Columns, Log, LogOptions, TopicOptions
from penstock.log.frame import checksum
from penstock.log.journal.header import HEADER_BYTES
from penstock.testing import CrashDisk, PowerCut
from tests.unit.log.faults import FaultyFiles, flip, offsets, payloads
from tests.unit.log.scenes import ends, filled, journals, write_out

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


TORN = [b"PNSJ\1" + bytes(3), b"\xff" * 80, b"x" * 8, bytes(70) + b"xx"]


@pytest.mark.parametrize("tail", TORN)
def test_whatever_stands_behind_the_last_group_is_cut(
    tmp_path: Path, tail: bytes
) -> None:
    texts = filled(tmp_path, 3)
    (journal,) = journals(tmp_path)
    whole = ends(journal)[-1]
    with journal.open("r+b") as file:
        file.seek(whole)
        file.write(tail)

    log = Log.open(tmp_path)

    assert payloads(log, "t") == texts
    assert [(c.position, c.length) for c in log.report.cuts] == [(whole, len(tail))]
    assert log.report.damages == []
    assert journal.stat().st_size == whole
    log.close()


@pytest.mark.parametrize("length", [0, 1, 64, 5000, 1 << 20])
def test_zeros_behind_the_last_group_are_no_torn_tail(
    tmp_path: Path, length: int
) -> None:
    texts = filled(tmp_path, 3)
    (journal,) = journals(tmp_path)
    whole = ends(journal)[-1]
    os.truncate(journal, whole)
    os.truncate(journal, whole + length)

    log = Log.open(tmp_path)

    assert payloads(log, "t") == texts
    assert (log.report.cuts, log.report.damages) == ([], [])
    assert journal.stat().st_size == whole
    log.close()


def test_zeros_where_a_group_was_that_is_known_to_be_synced_are_damage(
    tmp_path: Path,
) -> None:
    texts = filled(tmp_path, 3)
    (journal,) = journals(tmp_path)
    *_, before, whole = ends(journal)
    os.truncate(journal, before)
    os.truncate(journal, whole + 5000)

    log = Log.open(tmp_path)

    assert payloads(log, "t") == texts[:2]
    (damage,) = log.report.damages
    assert (damage.position, damage.length) == (before, whole - before)
    assert log.report.cuts == []
    log.close()


@pytest.mark.parametrize("tail", [*TORN, bytes(64), bytes(5000)])
def test_file_that_ends_with_its_groups_is_cut_behind_them(
    tmp_path: Path, tail: bytes
) -> None:
    texts = filled(tmp_path, 3)
    (journal,) = journals(tmp_path)
    whole = ends(journal)[-1]
    data = bytearray(journal.read_bytes()[:whole])
    data[5] = 0  # as a version before zeros made it
    data[12:16] = checksum(data[:HEADER_BYTES], ()).to_bytes(4, "little")
    journal.write_bytes(data + tail)

    log = Log.open(tmp_path)

    assert payloads(log, "t") == texts
    assert [(c.position, c.length) for c in log.report.cuts] == [(whole, len(tail))]
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
            write_out(log)
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


# Failures


def test_truncation_is_replayed_on_a_full_disk(
    tmp_path: Path,
) -> None:
    log = Log.open(tmp_path)
    log.create_topic("t")
    log.append("t", Columns([b"0", b"1", b"2"]))
    log.sync()
    log.truncate("t", 2)
    log.abandon()
    disk = FaultyFiles()
    disk.fail("write", ".seg", times=1000)

    log = Log.open(tmp_path, files=disk)

    assert payloads(log, "t") == [b"0", b"1"]
    log.abandon()


def test_damage_that_was_found_twice_is_reported_once(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    (journal,) = journals(tmp_path)
    flip(journal, 20)
    flip(journal, HEADER_BYTES + 100)

    log = Log.open(tmp_path)

    places = [(d.file, d.position) for d in log.report.damages]
    assert len(places) == len(set(places))
    log.close()


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

    assert log.flusher.unwritten_bytes <= 1024
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


def test_damaged_header_of_a_segment_is_found_on_start_and_on_read(
    tmp_path: Path,
) -> None:
    filled(tmp_path, 3)
    Log.open(tmp_path).close()
    flip(next(tmp_path.glob("topics/*/*.seg")), 30)

    for options in (LogOptions(), LogOptions(start_check_bytes=0)):
        log = Log.open(tmp_path, options)
        texts = payloads(log, "t")
        found = [(one.position, one.reason) for one in log.damages]
        log.abandon()

        assert len(texts) == 3
        assert found == [(0, "segment header fails its checksum")]


def test_damage_of_the_checkpoint_in_reserve_is_found_on_start(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    Log.open(tmp_path).close()
    log = Log.open(tmp_path)
    log.append("t", Columns([b"more"]))
    log.close()
    older, _ = sorted(tmp_path.glob("checkpoints/*.ckp"))
    flip(older, 20)

    log = Log.open(tmp_path)

    assert [one.reason for one in log.damages] == ["checkpoint fails its checksum"]
    assert len(payloads(log, "t")) == 4
    log.close()


# Groups whose sync failed


@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("calls", range(1, 9))
def test_what_was_not_found_once_does_not_come_back(
    calls: int, *, checkpoint: bool
) -> None:
    disk = CrashDisk()
    log = Log.open("/data", files=disk)
    log.create_topic("t")
    log.append("t", Columns([b"kept"]))
    log.checkpoint() if checkpoint else log.sync()
    # The first stays behind the end of its file, the other is to void it there.
    for broken in (("sync", "truncate"), ("sync_directory",)):
        disk.fail(failing(*broken))
        log.append("t", Columns([b"not confirmed"]))
        with pytest.raises(WriteFailed):
            log.sync()
    disk.fail(None)
    log.abandon()

    log = Log.open("/data", files=disk)
    assert payloads(log, "t") == [b"kept"]
    disk.cut_power_in(calls)
    log.append("t", Columns([b"next"]))
    with suppress(PowerCut):
        log.sync()
    log.abandon()
    for seed in range(20):
        found = Log.open("/data", files=disk.crashed(Random(seed)))
        assert payloads(found, "t") in ([b"kept"], [b"kept", b"next"]), seed
        found.abandon()


def failing(*actions: str) -> Callable[[str, str], OSError | None]:
    return lambda what, _: OSError("broken") if what in actions else None
