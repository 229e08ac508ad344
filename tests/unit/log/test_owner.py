from __future__ import annotations

from pathlib import Path

import pytest

from penstock.clock import ManualClock
from penstock.errors import InvalidBatch
from penstock.log import Log, Record
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
