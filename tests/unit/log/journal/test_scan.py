from __future__ import annotations

from pathlib import Path

import pytest

from penstock.files import Files
from penstock.log.journal import group, scan
from penstock.log.journal.files import FileJournal
from penstock.log.journal.group import JournalEntry
from penstock.log.journal.header import HEADER_BYTES
from penstock.log.journal.scan import JournalScan
from penstock.log.layout import Layout
from tests.unit.log.faults import flip

GROUP = group.HEADER_BYTES + group.ENTRY.size + 40


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(str(tmp_path))
    Path(layout.journal).mkdir()
    return layout


def write(
    layout: Layout, count: int, *, per_file: int = 100, sync: bool = True
) -> None:
    journal = FileJournal(
        Files(),
        layout,
        file_bytes=HEADER_BYTES + per_file * GROUP,
        entropy=lambda length: bytes(range(1, length + 1)),
    )
    for number in range(count):
        entries = [JournalEntry(256, 0, b"%040d" % number)]
        journal.append(number, entries, 0, sync=sync)
    journal.abandon()


def scanned(
    layout: Layout, start: int = 0, *, attested: int = 0, limit: int | None = None
) -> tuple[list[int], JournalScan]:
    found = JournalScan(Files(), layout, start, attested=attested, limit=limit)
    return [one.header.number for one in found.groups()], found


def file_of(layout: Layout, position: int = 0) -> Path:
    return Path(layout.journal_file(position))


def test_empty_journal_has_no_groups(layout: Layout) -> None:
    numbers, found = scanned(layout)

    assert (numbers, found.end, found.last_file) == ([], 0, None)
    assert (found.cuts, found.damages) == ([], [])


def test_groups_are_found_over_all_files_with_their_places(layout: Layout) -> None:
    write(layout, 5, per_file=2)

    found = JournalScan(Files(), layout, 0)
    places = [(one.file, one.file_position) for one in found.groups()]

    names = [f"journal/{start * GROUP:020}.jnl" for start in (0, 0, 2, 2, 4)]
    at = [HEADER_BYTES + index * GROUP for index in (0, 1, 0, 1, 0)]
    assert places == list(zip(names, at, strict=True))
    assert found.end == 5 * GROUP
    assert found.last_file == (names[-1], HEADER_BYTES + GROUP)


def test_entries_are_found_with_their_places(layout: Layout) -> None:
    write(layout, 2)

    (_, second) = JournalScan(Files(), layout, 0).groups()

    assert [bytes(entry.data) for entry in second.entries()] == [b"%040d" % 1]
    ((entry, place),) = second.placed_entries()
    data = file_of(layout).read_bytes()[second.file_position + place :]
    assert data[: len(entry.data)] == entry.data


@pytest.mark.parametrize("start", range(5))
def test_scan_begins_at_any_group(layout: Layout, start: int) -> None:
    write(layout, 5, per_file=2)

    numbers, _ = scanned(layout, start * GROUP)

    assert numbers == list(range(start, 5))


@pytest.mark.parametrize("limit", range(6))
def test_scan_looks_no_further_than_its_limit(layout: Layout, limit: int) -> None:
    write(layout, 5, per_file=2)

    numbers, found = scanned(layout, limit=limit * GROUP)

    assert numbers == list(range(limit))
    assert (found.cuts, found.damages) == ([], [])


def test_groups_are_the_same_through_a_small_window(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "CHUNK_BYTES", 100)
    write(layout, 9, per_file=4)

    numbers, _ = scanned(layout)

    assert numbers == list(range(9))


@pytest.mark.parametrize("byte", [0, 4, 9, 13, 20, 28, 36, 44, 66, 90, GROUP - 1])
def test_bad_last_group_is_a_torn_tail_unless_it_is_known_to_be_synced(
    layout: Layout, byte: int
) -> None:
    write(layout, 3)
    flip(file_of(layout), HEADER_BYTES + 2 * GROUP + byte)

    numbers, torn = scanned(layout)
    numbers_too, damaged = scanned(layout, attested=3 * GROUP)

    assert numbers == numbers_too == [0, 1]
    assert [(c.position, c.length) for c in torn.cuts] == [
        (HEADER_BYTES + 2 * GROUP, GROUP)
    ]
    assert (torn.damages, torn.end) == ([], 2 * GROUP)
    assert [(d.position, d.length) for d in damaged.damages] == [
        (HEADER_BYTES + 2 * GROUP, GROUP)
    ]
    assert (damaged.cuts, damaged.end) == ([], 3 * GROUP)


@pytest.mark.parametrize("byte", [0, 9, 13, 20, 66, GROUP - 1])
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_bad_group_in_front_of_one_that_knew_it_synced_is_damage(
    layout: Layout, bad: int, byte: int
) -> None:
    write(layout, 4)
    flip(file_of(layout), HEADER_BYTES + bad * GROUP + byte)

    numbers, found = scanned(layout)

    assert numbers == [number for number in range(4) if number != bad]
    assert [(d.position, d.length) for d in found.damages] == [
        (HEADER_BYTES + bad * GROUP, GROUP)
    ]
    assert found.cuts == []


def test_bad_group_in_front_of_unsynced_ones_ends_the_journal(layout: Layout) -> None:
    write(layout, 4, sync=False)
    flip(file_of(layout), HEADER_BYTES + GROUP + 70)

    numbers, found = scanned(layout)

    assert numbers == [0]
    assert [(c.position, c.length) for c in found.cuts] == [
        (HEADER_BYTES + GROUP, 3 * GROUP)
    ]


def test_bad_group_at_the_end_of_a_file_that_ended_unsynced_ends_the_journal(
    layout: Layout,
) -> None:
    write(layout, 4, per_file=2, sync=False)
    flip(file_of(layout), HEADER_BYTES + GROUP + 70)

    numbers, found = scanned(layout)

    assert numbers == [0]
    assert [c.length for c in found.cuts] == [GROUP]
    assert found.damages == []


def test_bad_group_at_the_end_of_a_file_that_ended_synced_is_damage(
    layout: Layout,
) -> None:
    write(layout, 4, per_file=2)
    flip(file_of(layout), HEADER_BYTES + GROUP + 70)

    numbers, found = scanned(layout)

    assert numbers == [0, 2, 3]
    assert [d.length for d in found.damages] == [GROUP]


def test_file_that_is_cut_short_in_front_of_its_successor_is_damage(
    layout: Layout,
) -> None:
    write(layout, 4, per_file=2)
    path = file_of(layout)
    path.write_bytes(path.read_bytes()[: HEADER_BYTES + GROUP])

    numbers, found = scanned(layout)

    assert numbers == [0, 2, 3]
    assert [d.length for d in found.damages] == [GROUP]


def test_missing_file_in_front_is_damage(layout: Layout) -> None:
    write(layout, 6, per_file=2)
    file_of(layout).unlink()

    numbers, found = scanned(layout)

    assert numbers == [2, 3, 4, 5]
    assert [(d.length, "missing" in d.reason) for d in found.damages] == [
        (2 * GROUP, True)
    ]


def test_missing_last_file_is_damage_if_it_was_synced(layout: Layout) -> None:
    write(layout, 4, per_file=2)
    file_of(layout, 2 * GROUP).unlink()

    numbers, found = scanned(layout, attested=4 * GROUP)

    assert numbers == [0, 1]
    assert [d.length for d in found.damages] == [2 * GROUP]
    assert found.end == 4 * GROUP


@pytest.mark.parametrize("content", [b"", bytes(64), bytes(500), b"PNSF\1" + bytes(90)])
def test_file_that_was_never_finished_is_none(layout: Layout, content: bytes) -> None:
    write(layout, 2)
    file_of(layout, 2 * GROUP).write_bytes(content)

    numbers, found = scanned(layout)

    assert numbers == [0, 1]
    assert (found.cuts, found.damages) == ([], [])


def test_file_of_another_name_is_none(layout: Layout) -> None:
    write(layout, 2)
    file_of(layout, 2 * GROUP).write_bytes(file_of(layout).read_bytes())

    numbers, _ = scanned(layout)

    assert numbers == [0, 1]


def test_damaged_file_header_is_made_up_from_the_first_group(layout: Layout) -> None:
    write(layout, 2)
    flip(file_of(layout), 30)

    numbers, found = scanned(layout)

    assert numbers == [0, 1]
    assert [(d.position, d.length) for d in found.damages] == [(0, HEADER_BYTES)]


def test_group_inside_the_data_of_a_damaged_one_is_not_taken_up(
    layout: Layout,
) -> None:
    stamp = int.from_bytes(bytes(range(1, 9)), "little")
    inner = group.encode(
        [JournalEntry(256, 0, b"inner")],
        position=0,
        synced=99,
        stamp=stamp,
        number=7,
        time_ms=0,
    )
    journal = FileJournal(
        Files(),
        layout,
        file_bytes=1 << 20,
        entropy=lambda length: bytes(range(1, length + 1)),
    )
    journal.append(1, [JournalEntry(256, 0, b"".join(inner))], 0, sync=True)
    journal.append(2, [JournalEntry(256, 0, b"x")], 0, sync=True)
    journal.abandon()
    flip(file_of(layout), HEADER_BYTES + 20)

    numbers, _ = scanned(layout)

    assert numbers == [2]


def test_torn_group_in_a_recycled_file_is_cut_by_what_it_claims(
    layout: Layout,
) -> None:
    stamps = iter(range(1, 9))
    journal = FileJournal(
        Files(),
        layout,
        file_bytes=HEADER_BYTES + 4 * GROUP,
        entropy=lambda length: next(stamps).to_bytes(length, "little"),
    )
    for number in range(10):
        journal.append(number, [JournalEntry(256, 0, b"%040d" % number)], 0, sync=False)
        if number == 7:
            journal.retire(4 * GROUP)
    journal.abandon()
    flip(file_of(layout, 8 * GROUP), HEADER_BYTES + GROUP + 70)

    numbers, found = scanned(layout, 4 * GROUP)

    assert numbers == [4, 5, 6, 7, 8]
    assert [(c.position, c.length) for c in found.cuts] == [
        (HEADER_BYTES + GROUP, GROUP)
    ]
