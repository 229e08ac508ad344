from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import UnsupportedVersion
from penstock.files import Files
from penstock.log import Log, LogOptions
from penstock.log import checkpoint as checkpoints
from penstock.log.checkpoint import Checkpoint, TopicRecord
from penstock.log.frame import checksum
from penstock.log.layout import Layout
from penstock.log.options import TopicOptions
from tests.unit.log.faults import FaultyFiles, flip, flipped, payloads, zeroed
from tests.unit.log.scenes import TEN, add, segmented

CHECKPOINT = Checkpoint(
    position=10,
    number=2,
    next_topic_id=2,
    topics=[TopicRecord(id=1, name="t", options=TopicOptions())],
    snapshots={256: b"s"},
)
GOLDEN = bytes.fromhex(
    "504e5343"  # magic "PNSC"
    "02000000"  # version, three zeros
    "da000000"  # length of the file: 218
    "26ae4371"  # CRC32C
) + (
    b"\x86\xa8position\n\xa6number\x02\xadnext_topic_id\x02"
    b"\xa7options\x91\x88\xaadurability\xa4sync\xafretention_age_s\xc0"
    b"\xafretention_bytes\xc0\xa7compact\xc2\xadsegment_bytes\xce\x04\0\0\0"
    b"\xadsegment_age_s\xc0\xa9expires_s\xc0\xb3dead_letter_expired\xc2"
    b"\xa4rows\x91\x98\x01\xa1t\x00\x00\x00\xc0\x00\xc0"
    b"\xa9snapshots\x81\xcd\x01\x00\xc4\x01s"
)
# Version 1, as it was before topics had a time at which events expire.
BEFORE = bytes.fromhex(
    "504e5343"  # magic "PNSC"
    "01000000"  # version, three zeros
    "f3000000"  # length of the file: 243
    "00bb9d27"  # CRC32C
) + (
    b"\x85\xa8position\n\xa6number\x02\xadnext_topic_id\x02"
    b"\xa6topics\x91\x87\xa2id\x01\xa4name\xa1t"
    b"\xa7options\x86\xaadurability\xa4sync\xafretention_age_s\xc0"
    b"\xafretention_bytes\xc0\xa7compact\xc2\xadsegment_bytes\xce\x04\0\0\0"
    b"\xadsegment_age_s\xc0"
    b"\xacstart_offset\x00\xaaend_offset\x00\xabactive_base\xc0"
    b"\xadactive_length\x00"
    b"\xa9snapshots\x81\xcd\x01\x00\xc4\x01s"
)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(str(tmp_path))
    Path(layout.checkpoints).mkdir()
    return layout


def at(position: int) -> Checkpoint:
    return Checkpoint(
        position=position, number=1, next_topic_id=1, topics=[], snapshots={}
    )


def test_bytes_of_a_checkpoint_are_those_of_the_table() -> None:
    assert checkpoints.encode(CHECKPOINT) == GOLDEN


def test_checkpoint_reads_back_from_the_bytes_of_the_table() -> None:
    assert checkpoints.decode(GOLDEN, "c") == CHECKPOINT
    assert checkpoints.decode(BEFORE, "c") == CHECKPOINT


def test_every_flipped_bit_is_detected() -> None:
    undetected = [
        name
        for name, data in flipped(GOLDEN)
        if checkpoints.decode(data, "c") is not None
    ]

    assert undetected == []


def test_checkpoint_torn_anywhere_is_none() -> None:
    torn = [GOLDEN[:length] for length in range(len(GOLDEN))]
    torn += [data for _, data in zeroed(GOLDEN)]

    assert [data for data in torn if checkpoints.decode(data, "c") is not None] == []


def test_zeros_are_never_a_checkpoint() -> None:
    assert checkpoints.decode(bytes(len(GOLDEN)), "c") is None


def test_later_version_is_refused_and_not_taken_for_damage() -> None:
    data = bytearray(GOLDEN)
    data[4] = 3
    data[12:16] = checksum(data, ()).to_bytes(4, "little")

    with pytest.raises(UnsupportedVersion) as caught:
        checkpoints.decode(bytes(data), "checkpoints/1.ckp")

    assert (caught.value.file, caught.value.version) == ("checkpoints/1.ckp", 3)


def test_stored_checkpoint_is_the_newest(layout: Layout) -> None:
    for position in (5, 300, 20):
        checkpoints.store(Files(), layout, at(position))

    assert checkpoints.positions(Files(), layout) == [5, 20, 300]
    assert checkpoints.load_newest(Files(), layout) == (at(300), [])


def test_damaged_checkpoint_is_reported_and_the_one_before_is_used(
    layout: Layout,
) -> None:
    checkpoints.store(Files(), layout, at(5))
    checkpoints.store(Files(), layout, CHECKPOINT)
    flip(layout.checkpoint_file(10), 100)

    found, damages = checkpoints.load_newest(Files(), layout)

    assert found == at(5)
    assert [(d.file, d.position, d.length) for d in damages] == [
        ("checkpoints/00000000000000000010.ckp", 0, 218)
    ]


def test_nothing_is_found_where_there_is_nothing(tmp_path: Path) -> None:
    layout = Layout(str(tmp_path))

    assert checkpoints.load_newest(Files(), layout) == (None, [])


@pytest.mark.parametrize(
    ("keep", "left"), [(1, [300]), (2, [20, 300]), (9, [5, 20, 300])]
)
def test_prune_keeps_the_newest_and_tells_the_oldest_of_them(
    layout: Layout, keep: int, left: list[int]
) -> None:
    for position in (5, 20, 300):
        checkpoints.store(Files(), layout, at(position))

    oldest = checkpoints.prune(Files(), layout, keep=keep)

    assert oldest == left[0]
    assert checkpoints.positions(Files(), layout) == left


@pytest.mark.parametrize("call", ["create", "write", "sync", "rename"])
def test_checkpoint_that_cannot_be_stored_leaves_the_one_before(
    layout: Layout, call: str
) -> None:
    disk = FaultyFiles()
    checkpoints.store(disk, layout, at(5))
    disk.fail(call, "/checkpoints", half=True)

    with pytest.raises(OSError, match="No space left"):
        checkpoints.store(disk, layout, at(20))

    assert checkpoints.load_newest(disk, layout) == (at(5), [])


def test_temporary_file_of_a_failed_store_is_no_checkpoint(layout: Layout) -> None:
    disk = FaultyFiles()
    disk.fail("rename")
    with pytest.raises(OSError, match="No space left"):
        checkpoints.store(disk, layout, at(5))

    assert checkpoints.positions(disk, layout) == []


# A checkpoint that falls due with the change knows of the change

DUE = LogOptions(checkpoint_bytes=1024)


@pytest.fixture
def due(tmp_path: Path) -> Log:
    """A log whose next commit takes a checkpoint."""
    log = Log.open(tmp_path, DUE)
    log.create_topic("t")
    log.commit()
    segmented(log, stored=False)
    add(log, bytes(2000))
    return log


def test_checkpoint_that_falls_due_with_a_deletion_does_not_undo_it(
    tmp_path: Path, due: Log
) -> None:
    due.delete_topic("t")
    due.abandon()

    log = Log.open(tmp_path)

    assert log.report.checkpoint_position > 0
    assert log.topics() == []
    log.close()


def test_checkpoint_that_falls_due_with_a_trim_does_not_undo_it(
    tmp_path: Path, due: Log
) -> None:
    due.trim("t", 8)
    due.abandon()

    log = Log.open(tmp_path)

    assert log.topic("t").start_offset == 8
    assert payloads(log, "t") == [*TEN[8:], bytes(2000)]
    assert list(log.damages) == []
    log.close()


def test_checkpoint_that_falls_due_with_a_truncation_does_not_undo_it(
    tmp_path: Path, due: Log
) -> None:
    due.truncate("t", 5)
    due.abandon()

    log = Log.open(tmp_path)

    assert payloads(log, "t") == TEN[:5]
    assert list(log.damages) == []
    log.close()
