from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock.files import Files
from penstock.log import Columns, Log, LogOptions, TopicOptions
from penstock.log.damage import Damage
from penstock.log.journal.header import HEADER_BYTES
from penstock.log.layout import Layout
from penstock.log.rebuild import find_topic
from tests.unit.log.faults import flip, payloads
from tests.unit.log.scenes import SMALL, ends, filled, journals, write_out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A topic of segments 0..1 and 2..3, one event a frame."""
    with Log.open(tmp_path) as log:
        log.create_topic("orders/é")
        for number in range(4):
            log.append("orders/é", Columns([b"%d" % number]))
            log.commit()
            write_out(log)
            if number == 1:
                log.roll("orders/é")
        directory = Path(log.topic("orders/é").directory)
    return directory


def find(folder: Path) -> tuple[object, list[Damage]]:
    damages: list[Damage] = []
    layout = Layout(str(folder.parent.parent))
    record = find_topic(Files(), layout, str(folder), damages.append)
    if record is None:
        return None, damages
    start, end, active = record.start_offset, record.end_offset, record.active_base
    return (record.id, record.name, start, end, active), damages


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.seg"))


def test_topic_is_found_from_its_newest_segment(folder: Path) -> None:
    assert find(folder) == ((1, "orders/é", 0, 4, 2), [])


def test_topic_starts_at_its_oldest_segment(folder: Path) -> None:
    segments(folder)[0].unlink()

    assert find(folder) == ((1, "orders/é", 2, 4, 2), [])


def test_damaged_header_is_reported_and_the_segment_before_is_used(
    folder: Path,
) -> None:
    flip(segments(folder)[1], 20)

    found, damages = find(folder)

    assert found == (1, "orders/é", 0, 2, 0)
    assert [damage.position for damage in damages] == [0]


def test_header_torn_by_a_crash_is_no_topic(folder: Path) -> None:
    newest = segments(folder)[1]
    newest.write_bytes(b"PNSS\1" + bytes(200))

    found, _ = find(folder)

    assert found == (1, "orders/é", 0, 2, 0)


@pytest.mark.parametrize("where", [-1, -60])
def test_last_segment_counts_up_to_its_first_bad_frame(
    folder: Path, where: int
) -> None:
    newest = segments(folder)[1]
    flip(newest, newest.stat().st_size + where)

    found, _ = find(folder)

    assert found == (1, "orders/é", 0, 3, 2)


def test_torn_last_frame_does_not_count(folder: Path) -> None:
    newest = segments(folder)[1]
    newest.write_bytes(newest.read_bytes()[:-8])

    found, _ = find(folder)

    assert found == (1, "orders/é", 0, 3, 2)


def test_folder_without_a_segment_is_no_topic(folder: Path) -> None:
    for segment in segments(folder):
        segment.unlink()

    assert find(folder) == (None, [])


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


@pytest.mark.parametrize("others", [0, 8])
def test_topic_found_from_segments_is_the_newer_of_two_of_its_name(
    tmp_path: Path, others: int
) -> None:
    filled(tmp_path, 100, SMALL)
    with Log.open(tmp_path, SMALL) as log:
        old = Path(log.topic("t").directory)
        shutil.copytree(old, tmp_path / "copy")
        log.delete_topic("t")
        for number in range(others):
            log.create_topic(f"other {number}")
        log.create_topic("t")
        log.append("t", Columns([b"new"]))
    shutil.move(tmp_path / "copy", old)
    shutil.rmtree(tmp_path / "checkpoints")

    log = Log.open(tmp_path, SMALL)

    assert payloads(log, "t") == [b"new"]
    log.close()


def test_folder_without_segments_is_passed_over(tmp_path: Path) -> None:
    texts = filled(tmp_path, 100, SMALL)
    (tmp_path / "topics" / "empty-9").mkdir()
    shutil.rmtree(tmp_path / "checkpoints")

    log = Log.open(tmp_path, SMALL)

    assert log.topics() == ["t"]
    assert payloads(log, "t") == texts
    log.close()
