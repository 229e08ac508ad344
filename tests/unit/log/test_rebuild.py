from __future__ import annotations

from pathlib import Path

import pytest

from penstock.files import Files
from penstock.log import Columns, Log
from penstock.log.damage import Damage
from penstock.log.layout import Layout
from penstock.log.rebuild import find_topic
from tests.unit.log.faults import flip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A topic of segments 0..1 and 2..3, one event a frame."""
    with Log.open(tmp_path) as log:
        log.create_topic("orders/é")
        for number in range(4):
            log.append("orders/é", Columns([b"%d" % number]))
            log.commit()
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
