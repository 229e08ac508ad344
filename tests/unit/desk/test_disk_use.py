from __future__ import annotations

from pathlib import Path

from penstock.clock import ManualClock
from penstock.desk.disk_use import LOOK_MS, DiskUse
from penstock.log import Columns, Log
from penstock.testing.crashdisk import CrashDisk


def test_what_is_on_disk_and_what_is_left(tmp_path: Path) -> None:
    clock = ManualClock()
    with Log.open(tmp_path, clock=clock) as log:
        use = DiskUse(log)
        before = use.row()
        log.create_topic("t")
        log.append("t", Columns([bytes(100_000)], 0))
        log.checkpoint()

        assert use.row() == before  # looked at now and then only
        clock.advance(LOOK_MS / 1000)
        after = use.row()

        assert after.used_bytes >= before.used_bytes + 100_000
        assert after.free_bytes is not None
        assert after.free_bytes > 0


def test_a_log_that_is_not_in_files_has_no_disk() -> None:
    with Log.open("/data", files=CrashDisk()) as log:
        assert DiskUse(log).row().free_bytes is None
