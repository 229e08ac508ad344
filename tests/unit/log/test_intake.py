from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from penstock.errors import DiskFull, InvalidBatch
from penstock.log import Batch, Columns, Log
from penstock.log import intake as intake_module
from penstock.log.intake import checked_size
from tests.unit.log.faults import FaultyFiles, payloads


@pytest.fixture
def disk() -> FaultyFiles:
    return FaultyFiles()


@pytest.fixture
def log(tmp_path: Path, disk: FaultyFiles) -> Log:
    log = Log.open(tmp_path, files=disk)
    log.create_topic("t")
    log.sync()
    return log


def encoded(count: int = 3) -> Batch:
    return Batch.of("t", Columns([b"x"] * count).encode(0, bytes(16)))


def test_size_of_an_encoded_batch_is_that_of_its_frame() -> None:
    assert checked_size(encoded(), 100) == encoded().header.length


@pytest.mark.parametrize("batch", [encoded().since(1), encoded().before(2)])
def test_part_of_a_frame_cannot_be_appended(batch: Batch) -> None:
    with pytest.raises(InvalidBatch, match="must be a whole frame"):
        checked_size(batch, 100)


def test_frame_with_gaps_cannot_be_appended() -> None:
    columns = Columns([b"x"])
    columns.offsets = [1]

    with pytest.raises(InvalidBatch):
        checked_size(Batch.of("t", columns.encode(0, bytes(16))), 100)


def test_append_gives_out_dense_offsets(log: Log) -> None:
    bases = [
        log.append("t", events).base_offset
        for events in (Columns([b"a", b"b"]), encoded(3), Columns([b"c"]))
    ]

    assert bases == [0, 2, 5]
    assert log.topic("t").next_offset == 6
    assert log.topic("t").end_offset == 0


def test_topic_setting_ends_the_open_frame(log: Log) -> None:
    log.append("t", Columns([b"a"]))
    log.set_options("t", log.topic("t").options)
    log.append("t", Columns([b"b"]))

    log.commit()

    assert [batch.payloads() for batch in log.read("t", 0)] == [[b"a"], [b"b"]]


def test_failures_of_long_ago_are_forgotten(log: Log, disk: FaultyFiles) -> None:
    kept = intake_module._FAILURES_KEPT
    disk.fail("write", "/journal", times=kept + 1)
    groups = []
    for _ in range(kept + 1):
        groups.append(log.append("t", Columns([b"x"])).group)
        with pytest.raises(DiskFull):
            log.commit()

    assert log.outcome(groups[0]) != "failed"
    assert log.outcome(groups[1]) == "failed"
    assert log.outcome(groups[-1]) == "failed"
    assert payloads(log, "t") == []


def test_batch_that_cannot_be_encoded_does_not_block_the_log(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.log.columns.MAX_FRAME_BYTES", 4096)
    for _ in range(3):
        log.append("t", Columns([bytes(1500)]))
    with suppress(InvalidBatch):
        log.commit()
    log.append("t", Columns([b"small"]))

    log.commit()

    assert payloads(log, "t")[-1] == b"small"
