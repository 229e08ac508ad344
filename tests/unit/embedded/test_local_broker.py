from __future__ import annotations

from pathlib import Path

import pytest

from penstock.clock import ManualClock
from penstock.embedded.local_broker import LocalOptions, open_broker
from penstock.errors import DirectoryLocked, DiskFull, NotADataDirectory, WriteFailed
from penstock.testing import CrashDisk
from penstock.testing.disk import FaultyDisk


def test_a_file_is_no_data_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(NotADataDirectory, match="file"):
            open_broker(path, LocalOptions(), ManualClock(), None)


def test_a_disk_that_fails_is_told_as_such() -> None:
    disk = FaultyDisk(CrashDisk())

    disk.fail_syncs(1)
    with pytest.raises(WriteFailed, match="opening /data failed"):
        open_broker("/data", LocalOptions(), ManualClock(), disk)
    disk.heal()
    disk.fill(1)
    with pytest.raises(DiskFull):
        open_broker("/new", LocalOptions(), ManualClock(), disk)


def test_a_directory_belongs_to_one(tmp_path: Path) -> None:
    broker = open_broker(tmp_path, LocalOptions(), ManualClock(), None)

    with pytest.raises(DirectoryLocked):
        open_broker(tmp_path, LocalOptions(), ManualClock(), None)
    broker.log.close()
