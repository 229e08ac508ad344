from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import DiskFull, UnsupportedVersion, WriteFailed
from penstock.log.frame import checksum
from penstock.log.journal import files as journal
from penstock.log.journal import group, header
from penstock.log.journal.files import FileJournal
from penstock.log.journal.group import JournalEntry
from penstock.log.journal.header import HEADER_BYTES, FileHeader
from penstock.log.journal.scan import JournalScan
from penstock.log.layout import Layout
from tests.unit.log.faults import FaultyFiles, flipped, zeroed

GOLDEN = bytes.fromhex(
    "504e5346"  # magic "PNSF"
    "02"  # version
    "01"  # flags: recycled
    "0000"
    "40000000"  # length of this header
    "7dd24526"  # CRC32C
    "0010000000000000"  # position of the first group
    "8877665544332211"  # stamp
    "d204000000000000"  # time of creation
    "e803000000000000"  # synced
    "00000000000000000000000000000000"
)
# A group of one entry of 40 bytes.
GROUP_BYTES = group.HEADER_BYTES + group.ENTRY.size + 40


def numbers() -> Callable[[int], bytes]:
    """Stamps 1, 2, 3 and so on."""
    drawn = iter(range(1, 1000))
    return lambda length: next(drawn).to_bytes(length, "little")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(str(tmp_path))
    Path(layout.journal).mkdir()
    return layout


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def writer(disk: FaultyFiles, layout: Layout) -> FileJournal:
    return FileJournal(
        disk,
        layout,
        file_bytes=HEADER_BYTES + 3 * GROUP_BYTES,
        entropy=numbers(),
    )


def write(writer: FileJournal, *numbers: int, sync: bool = True) -> None:
    for number in numbers:
        entries = [JournalEntry(256, 0, b"%040d" % number)]
        writer.append(number, entries, 1234, sync=sync)


def scanned(disk: FaultyFiles, layout: Layout, start: int = 0) -> list[int]:
    return [f.header.number for f in JournalScan(disk, layout, start).groups()]


def names(layout: Layout) -> list[int]:
    return sorted(int(path.stem) for path in Path(layout.journal).iterdir())


def test_bytes_of_a_file_header_are_those_of_the_table() -> None:
    stamp = 0x1122334455667788
    data = header.encode_header(4096, stamp, 1234, synced=1000, recycled=True)

    assert data == GOLDEN


def test_file_header_reads_back_from_the_bytes_of_the_table() -> None:
    assert header.decode_header(GOLDEN + b"groups", "j") == FileHeader(
        start=4096, stamp=0x1122334455667788, longer=True, zeros=False, synced=1000
    )


def test_every_flipped_bit_of_a_file_header_is_detected() -> None:
    undetected = [
        name
        for name, data in flipped(GOLDEN)
        if header.decode_header(data, "j") is not None
    ]

    assert undetected == []


def test_file_header_torn_anywhere_is_none() -> None:
    torn = [GOLDEN[:length] for length in range(len(GOLDEN))]
    torn += [data for _, data in zeroed(GOLDEN)]

    assert [data for data in torn if header.decode_header(data, "j")] == []


def test_zeros_are_never_a_file_header() -> None:
    assert header.decode_header(bytes(4096), "j") is None


def test_file_of_version_1_is_read_as_well() -> None:
    before = GOLDEN[:4] + b"\x01" + GOLDEN[5:12] + bytes.fromhex("84c27681")

    assert header.decode_header(before + GOLDEN[16:], "j") is not None


def test_later_version_is_refused_and_not_taken_for_damage() -> None:
    data = bytearray(GOLDEN)
    data[4] = 3
    data[12:16] = checksum(data, ()).to_bytes(4, "little")

    with pytest.raises(UnsupportedVersion):
        header.decode_header(bytes(data), "j")


def test_file_is_its_header_and_its_groups(writer: FileJournal, layout: Layout) -> None:
    write(writer, 7)

    data = Path(layout.journal_file(0)).read_bytes()
    expected = group.encode(
        [JournalEntry(256, 0, b"%040d" % 7)],
        position=0,
        synced=0,
        stamp=1,
        number=7,
        time_ms=1234,
    )
    assert data[:64] == header.encode_header(0, 1, 1234, synced=0, recycled=False)
    assert data[64 : 64 + GROUP_BYTES] == b"".join(expected)
    assert data[64 + GROUP_BYTES :] == bytes(2 * GROUP_BYTES)


@pytest.fixture
def roomy(disk: FaultyFiles, layout: Layout) -> FileJournal:
    """A journal whose files have room for many groups."""
    return FileJournal(disk, layout, file_bytes=1 << 24, entropy=numbers())


def size_of(layout: Layout, start: int = 0) -> int:
    return Path(layout.journal_file(start)).stat().st_size


def test_small_groups_find_their_blocks_in_a_file_of_that_length(
    roomy: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    write(roomy, 1)
    before, writes = size_of(layout), disk.count("write", "/journal")

    write(roomy, *range(2, 500))

    assert before == HEADER_BYTES + GROUP_BYTES + journal.MIN_ZEROS_BYTES
    assert size_of(layout) == before
    assert disk.count("write", "/journal") - writes == 498
    assert scanned(disk, layout) == [*range(1, 500)]


def test_file_gets_more_zeros_the_more_it_holds_up_to_a_limit(
    roomy: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    sizes = {}
    group_bytes = 32 * 1024
    for number in range(100):
        entries = [JournalEntry(256, 0, bytes(group_bytes - 80))]
        roomy.append(number, entries, 0, sync=False)
        sizes[size_of(layout)] = HEADER_BYTES + (number + 1) * group_bytes

    ahead = [size - held for size, held in sizes.items()]
    assert len(sizes) < 10
    assert max(sizes) - journal.MAX_ZEROS_BYTES <= HEADER_BYTES + 100 * group_bytes
    assert all(0 <= one <= journal.MAX_ZEROS_BYTES for one in ahead)
    assert scanned(disk, layout) == [*range(100)]


def test_large_group_is_not_written_twice(roomy: FileJournal, layout: Layout) -> None:
    large = bytes(journal.MIN_ZEROS_BYTES)
    roomy.append(1, [JournalEntry(256, 0, large)], 0, sync=True)

    assert size_of(layout) == HEADER_BYTES + roomy.position


def test_zeros_begin_behind_groups_that_brought_none(
    roomy: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    """Large ones may reach beyond the zeros of those before."""
    sizes = [40, 1 << 17, 40, 1 << 16, 1 << 18, 40, 1 << 20, 40, 40]
    for number, size in enumerate(sizes):
        entries = [JournalEntry(256, 0, b"x" * size)]
        roomy.append(number, entries, 1234, sync=True)

        assert scanned(disk, layout) == [*range(number + 1)]


def test_zeros_go_no_further_than_the_file_may(
    writer: FileJournal, layout: Layout
) -> None:
    write(writer, *range(1, 5))

    full = HEADER_BYTES + 3 * GROUP_BYTES
    assert [size_of(layout, one) for one in names(layout)] == [full, full]


@pytest.mark.parametrize("undone", [True, False])
@pytest.mark.parametrize("half", [True, False])
def test_disk_without_room_for_zeros_is_journalled_to(
    roomy: FileJournal,
    disk: FaultyFiles,
    layout: Layout,
    half: bool,
    undone: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    disk.fail("write", "/journal", half=half, skip=1)
    if not undone:
        disk.fail("truncate", "/journal")

    write(roomy, 1, 2, 3)

    told = [getattr(record, "action", "") for record in caplog.records]
    assert told.count("journal_not_prepared") == 1
    assert disk.count("write", "/journal") == 1 + 1 + 3
    assert scanned(disk, layout) == [1, 2, 3]
    if undone:
        assert size_of(layout) == HEADER_BYTES + 3 * GROUP_BYTES


def test_group_is_brief_if_it_finds_its_blocks_in_an_open_file(
    roomy: FileJournal,
) -> None:
    room = journal.MIN_ZEROS_BYTES
    before = roomy.is_brief(1)
    write(roomy, 1)

    found = [roomy.is_brief(size) for size in (1, room, room + 1)]
    roomy.append(2, [JournalEntry(256, 0, bytes(room // 2))], 0, sync=True)
    later = [roomy.is_brief(size) for size in (1, room // 4, room)]

    assert before is False
    assert found == [True, True, False]
    assert later == [True, True, False]


def test_nothing_is_brief_after_a_file_that_ended_unsynced_or_in_doubt(
    writer: FileJournal, disk: FaultyFiles
) -> None:
    write(writer, *range(1, 5), sync=False)
    unsynced = writer.is_brief(1)
    writer.sync()
    synced = writer.is_brief(1)
    disk.fail("sync", "/journal", error=errno.EIO)
    with pytest.raises(WriteFailed):
        write(writer, 5)

    assert (unsynced, synced, writer.is_brief(1)) == (False, True, False)


def test_zeros_behind_the_groups_are_cut_off_in_the_end(
    roomy: FileJournal, layout: Layout
) -> None:
    write(roomy, 1, 2)

    roomy.close()

    assert size_of(layout) == HEADER_BYTES + 2 * GROUP_BYTES


def test_groups_know_how_far_the_journal_was_synced_before_them(
    writer: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    write(writer, 1, 2, sync=False)
    write(writer, 3, sync=True)
    write(writer, 4, sync=False)

    found = list(JournalScan(disk, layout, 0).groups())

    assert [f.header.synced for f in found] == [0, 0, 0, 3 * GROUP_BYTES]
    assert (writer.position, writer.synced) == (4 * GROUP_BYTES, 3 * GROUP_BYTES)
    assert writer.syncs == 1


def test_file_that_would_grow_too_large_is_followed_by_another(
    writer: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    write(writer, *range(1, 8))

    assert names(layout) == [0, 3 * GROUP_BYTES, 6 * GROUP_BYTES]
    assert scanned(disk, layout) == [1, 2, 3, 4, 5, 6, 7]


def test_new_file_and_its_name_are_synced_before_a_group_is_written(
    writer: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    write(writer, 1, sync=False)

    path = layout.journal_file(0)
    assert disk.calls == [
        ("create", path),
        ("write", path),
        ("sync", path),
        ("sync_directory", layout.journal),
        ("write", path),  # zeros
        ("write", path),
    ]


def test_file_that_ended_unsynced_is_synced_before_the_next_one_is(
    writer: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    write(writer, 1, 2, 3, sync=False)
    write(writer, 4, sync=False)
    before = disk.count("sync", layout.journal_file(0))

    writer.sync()

    first, second = layout.journal_file(0), layout.journal_file(3 * GROUP_BYTES)
    found = list(JournalScan(disk, layout, 0).groups())[3]
    assert found.header.synced == 0
    assert (before, disk.count("sync", first)) == (1, 2)
    assert [one for one in disk.calls if one[0] == "sync"][-2:] == [
        ("sync", first),
        ("sync", second),
    ]
    assert writer.synced == writer.position == 4 * GROUP_BYTES


def test_retired_files_are_used_again_and_their_old_groups_are_not_seen(
    writer: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    write(writer, *range(1, 7))
    writer.retire(3 * GROUP_BYTES)

    write(writer, 7)

    start = 6 * GROUP_BYTES
    assert names(layout) == [3 * GROUP_BYTES, start]
    size = Path(layout.journal_file(start)).stat().st_size
    assert size == HEADER_BYTES + 3 * GROUP_BYTES, "the old content is still there"
    assert scanned(disk, layout, 3 * GROUP_BYTES) == [4, 5, 6, 7]


def test_a_retired_file_that_is_longer_than_new_ones_is_used_again(
    writer: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    large = [JournalEntry(256, 0, bytes(size)) for size in (2048, 4096)]
    write(writer, 1)
    writer.append(2, large[:1], 0, sync=True)
    start = writer.position
    write(writer, 3)
    writer.retire(start)

    writer.append(4, large[1:], 0, sync=True)

    assert scanned(disk, layout, start) == [3, 4]
    # The large one is the file that begins last now, the other is a spare.
    assert names(layout) == [0, start, start + GROUP_BYTES]


def test_old_content_of_a_recycled_file_is_no_torn_tail(
    writer: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    write(writer, *range(1, 7))
    writer.retire(3 * GROUP_BYTES)
    write(writer, 7)
    scan = JournalScan(disk, layout, 6 * GROUP_BYTES)

    found = [f.header.number for f in scan.groups()]

    assert found == [7]
    assert (scan.cuts, scan.damages) == ([], [])


def test_at_most_a_few_retired_files_are_kept(
    writer: FileJournal, layout: Layout
) -> None:
    write(writer, *range(1, 20))

    writer.retire(writer.position)

    assert len(names(layout)) == journal.MAX_SPARES + 1


def test_file_that_is_still_needed_is_not_retired(
    writer: FileJournal, layout: Layout
) -> None:
    write(writer, *range(1, 8))

    writer.retire(3 * GROUP_BYTES - 1)
    write(writer, 8, 9, 10)

    assert names(layout) == [i * 3 * GROUP_BYTES for i in range(4)]


def test_close_leaves_no_spares_and_no_old_content(
    writer: FileJournal, layout: Layout
) -> None:
    write(writer, *range(1, 7))
    writer.retire(3 * GROUP_BYTES)
    write(writer, *range(7, 10))
    writer.retire(6 * GROUP_BYTES)
    write(writer, 10)

    writer.close()

    last = layout.journal_file(9 * GROUP_BYTES)
    assert names(layout) == [6 * GROUP_BYTES, 9 * GROUP_BYTES]
    assert Path(last).stat().st_size == HEADER_BYTES + GROUP_BYTES


@pytest.mark.parametrize(
    ("code", "kind"), [(errno.ENOSPC, DiskFull), (errno.EIO, WriteFailed)]
)
@pytest.mark.parametrize("half", [False, True])
def test_failed_write_leaves_no_trace(
    writer: FileJournal,
    disk: FaultyFiles,
    layout: Layout,
    code: int,
    kind: type[WriteFailed],
    half: bool,
) -> None:
    write(writer, 1)
    disk.fail("write", "/journal", error=code, half=half)

    with pytest.raises(WriteFailed, match="writing .* failed") as caught:
        write(writer, 2)

    assert type(caught.value) is kind
    assert writer.position == GROUP_BYTES
    write(writer, 3)
    assert scanned(disk, layout) == [1, 3]


def test_half_a_group_that_cannot_be_taken_back_is_left_behind_in_its_file(
    writer: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    write(writer, 1)
    disk.fail("write", "/journal", error=errno.EIO, half=True)
    disk.fail("truncate", "/journal", error=errno.EIO)
    with pytest.raises(WriteFailed):
        write(writer, 2)

    write(writer, 3)

    assert names(layout) == [0, GROUP_BYTES]
    assert scanned(disk, layout) == [1, 3]


def test_file_whose_first_group_failed_is_begun_again_at_the_same_place(
    writer: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    disk.fail("write", "/journal", error=errno.EIO, half=True, skip=2)
    disk.fail("truncate", "/journal", error=errno.EIO)
    with pytest.raises(WriteFailed):
        write(writer, 1)

    write(writer, 2, 3, 4, 5)

    assert names(layout) == [0, 3 * GROUP_BYTES]
    assert scanned(disk, layout) == [2, 3, 4, 5]
    writer.retire(3 * GROUP_BYTES)
    assert names(layout) == [0, 3 * GROUP_BYTES]


def test_group_whose_sync_failed_is_abandoned_with_its_file(
    writer: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    write(writer, 1)
    disk.fail("sync", "/journal", error=errno.EIO)

    with pytest.raises(WriteFailed, match="syncing .* failed"):
        write(writer, 2)

    assert (writer.position, writer.synced) == (GROUP_BYTES, GROUP_BYTES)
    write(writer, 3)
    scan = JournalScan(disk, layout, 0)
    assert [f.header.number for f in scan.groups()] == [1, 3]
    assert (scan.cuts, scan.damages) == ([], [])


def test_sync_after_a_failed_sync_does_not_succeed_without_syncing(
    writer: FileJournal, disk: FaultyFiles
) -> None:
    write(writer, 1, sync=False)
    disk.fail("sync", "/journal", error=errno.EIO)
    with pytest.raises(WriteFailed):
        writer.sync()
    before = disk.count("sync", "/journal")

    try:
        writer.sync()
    except WriteFailed:
        return

    assert disk.count("sync", "/journal") > before
    assert writer.synced == writer.position


@pytest.mark.parametrize("call", ["create", "write", "sync", "sync_directory"])
def test_file_that_cannot_be_started_is_started_again(
    writer: FileJournal, disk: FaultyFiles, layout: Layout, call: str
) -> None:
    disk.fail(call, "/journal")
    with pytest.raises(DiskFull, match="starting journal file .* failed"):
        write(writer, 1)

    write(writer, 2)

    assert scanned(disk, layout) == [2]
    assert names(layout) == [0]


@pytest.mark.parametrize("call", ["rename", "create", "write", "sync"])
def test_recycling_that_fails_is_made_up_for(
    writer: FileJournal, disk: FaultyFiles, layout: Layout, call: str
) -> None:
    write(writer, *range(1, 7))
    writer.retire(3 * GROUP_BYTES)
    disk.fail(call, f"{6 * GROUP_BYTES:020}", error=errno.EIO)
    with pytest.raises(WriteFailed):
        write(writer, 7)

    write(writer, 8)

    assert scanned(disk, layout, 3 * GROUP_BYTES) == [4, 5, 6, 8]


def test_group_larger_than_a_file_gets_a_file_of_its_own(
    writer: FileJournal, disk: FaultyFiles, layout: Layout
) -> None:
    write(writer, 1)
    writer.append(2, [JournalEntry(256, 0, bytes(4096))], 0, sync=True)
    write(writer, 3)

    assert scanned(disk, layout) == [1, 2, 3]
    assert len(names(layout)) == 3


def test_sync_with_nothing_to_sync_does_nothing(
    writer: FileJournal, disk: FaultyFiles
) -> None:
    writer.sync()
    write(writer, 1)
    before = disk.count("sync")

    writer.sync()

    assert disk.count("sync") == before


def test_abandon_leaves_the_files_as_they_are(
    writer: FileJournal, layout: Layout
) -> None:
    write(writer, *range(1, 7))
    writer.retire(3 * GROUP_BYTES)

    writer.abandon()

    assert names(layout) == [0, 3 * GROUP_BYTES]
