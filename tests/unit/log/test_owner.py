from __future__ import annotations

from pathlib import Path

import pytest

from penstock.clock import ManualClock
from penstock.errors import InvalidBatch, UnownedRecords
from penstock.log import Log, LogOptions, Record
from tests.unit.log.faults import Counter


def test_record_comes_back_as_its_owner_wrote_it(tmp_path: Path) -> None:
    log = Log.open(tmp_path, owners={300: Counter()}, clock=ManualClock(5.0))
    group = log.record(300, b"\1 and more")
    log.sync()
    log.abandon()
    owner = Counter()

    Log.open(tmp_path, owners={300: owner}).close()

    assert owner.replayed == [
        Record(kind=300, data=b"\1 and more", group=group, time_ms=5000)
    ]


def test_owners_get_their_own_records_only(tmp_path: Path) -> None:
    with Log.open(tmp_path, owners={300: Counter(), 301: Counter()}) as log:
        log.record(300, b"\1")
        log.record(301, b"\2")
        log.record(300, b"\3")
        log.sync()
        log.abandon()
    one, other = Counter(), Counter()

    Log.open(tmp_path, owners={300: one, 301: other}).close()

    assert (one.total, other.total) == (4, 2)


def test_record_is_synced_whatever_the_topics_want(tmp_path: Path) -> None:
    with Log.open(tmp_path, owners={300: Counter()}) as log:
        group = log.record(300, b"\1")

        log.commit()

        assert log.outcome(group) == "synced"


@pytest.mark.parametrize("kind", [0, 5, 255, 65536, 301])
def test_kind_that_is_nobodys_is_refused(tmp_path: Path, kind: int) -> None:
    with Log.open(tmp_path, owners={300: Counter()}) as log:
        with pytest.raises(InvalidBatch) as caught:
            log.record(kind, b"")

        assert caught.value.field == "kind"
        assert log.pending_bytes == 0


# Restoring and replaying


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
