from __future__ import annotations

from pathlib import Path

import pytest

from penstock.clock import ManualClock
from penstock.errors import InvalidBatch, UnownedRecords, WriteFailed
from penstock.log import Columns, Log, LogOptions, Record
from tests.unit.log.faults import Counter, FaultyFiles


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


# Collecting


class Saver(Counter):
    """An owner that saves its numbers up until a group is closed."""

    def __init__(self, *, sync: bool = True) -> None:
        super().__init__()
        self.saved: list[int] = []
        self.taken = 0
        self._sync = sync

    def collect(self) -> list[tuple[bytes, bool]]:
        saved, self.saved = self.saved, []
        return [(bytes([number]), self._sync) for number in saved]

    def taken_back(self) -> None:
        self.taken += 1


def collected(directory: Path) -> list[bytes]:
    """The records that are found after a crash."""
    owner = Counter()
    Log.open(directory, owners={300: owner}).abandon()
    return [record.data for record in owner.replayed]


def test_saved_changes_are_collected_when_the_group_is_closed(tmp_path: Path) -> None:
    owner = Saver()
    log = Log.open(tmp_path, owners={300: owner})
    owner.saved = [1, 2]
    commit = log.begin_commit()
    assert commit is not None
    owner.saved = [3]
    assert log.begin_commit() is None
    assert owner.saved == [3]
    commit.run()
    log.end_commit(commit)

    log.abandon()

    assert collected(tmp_path) == [b"\1", b"\2"]


def test_collected_records_follow_the_events_of_their_group(tmp_path: Path) -> None:
    owner = Saver()
    log = Log.open(tmp_path, owners={300: owner})
    owner.saved = [1]
    log.create_topic("t")
    appended = log.append("t", Columns([b"x"]))
    log.commit()
    log.abandon()
    after = Counter()

    log = Log.open(tmp_path, owners={300: after})

    assert [record.group for record in after.replayed] == [appended.group]
    assert log.topic("t").end_offset == 1
    log.abandon()


def test_nothing_collected_is_nothing_to_commit(tmp_path: Path) -> None:
    with Log.open(tmp_path, owners={300: Saver()}) as log:
        assert log.begin_commit() is None


@pytest.mark.parametrize(("sync", "outcome"), [(True, "synced"), (False, "written")])
def test_owner_says_whether_a_record_has_to_be_synced(
    tmp_path: Path, sync: bool, outcome: str
) -> None:
    owner = Saver(sync=sync)
    with Log.open(tmp_path, owners={300: owner}) as log:
        owner.saved = [1]
        group = log.open_group

        log.commit()

        assert log.outcome(group) == outcome


def test_careless_record_makes_no_other_careless(tmp_path: Path) -> None:
    careless = Saver(sync=False)
    with Log.open(tmp_path, owners={300: Counter(), 301: careless}) as log:
        group = log.record(300, b"\1")
        careless.saved = [1]

        log.commit()

        assert log.outcome(group) == "synced"


def test_checkpoint_collects_before_it_takes_snapshots(tmp_path: Path) -> None:
    owner = Saver()
    log = Log.open(tmp_path, owners={300: owner})
    owner.saved, owner.total = [5], 5
    log.checkpoint()
    log.abandon()
    after = Counter()

    Log.open(tmp_path, owners={300: after}).close()

    assert (after.total, after.replayed) == (5, [])


def test_every_owner_hears_that_groups_were_taken_back(tmp_path: Path) -> None:
    disk, one, other = FaultyFiles(), Saver(), Saver()
    log = Log.open(tmp_path, owners={300: one, 301: other}, files=disk)
    one.saved = [1]
    disk.fail("sync", ".jnl")

    with pytest.raises(WriteFailed):
        log.commit()

    assert (one.taken, other.taken) == (1, 1)
    one.saved = [2]
    log.commit()
    assert (one.taken, other.taken) == (1, 1)
    log.abandon()


def test_record_that_failed_is_there_once_it_is_said_again(tmp_path: Path) -> None:
    disk, owner = FaultyFiles(), Saver()
    log = Log.open(tmp_path, owners={300: owner}, files=disk)
    owner.saved = [1]
    disk.fail("write", ".jnl", half=True)
    with pytest.raises(WriteFailed):
        log.commit()
    owner.saved = [1]

    log.commit()
    log.abandon()

    assert collected(tmp_path) == [b"\1"]


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
