from __future__ import annotations

import errno
from pathlib import Path

import pytest

from penstock.files import FileSystem
from penstock.testing import CrashDisk, FaultyDisk
from penstock.testing.disk import UnsyncedFiles


@pytest.fixture(params=["memory", "disk"])
def disk(request: pytest.FixtureRequest) -> FaultyDisk:
    return FaultyDisk(CrashDisk() if request.param == "memory" else UnsyncedFiles())


def code_of(caught: pytest.ExceptionInfo[OSError]) -> int | None:
    return caught.value.errno


def test_it_is_a_file_system(disk: FaultyDisk, tmp_path: Path) -> None:
    files: FileSystem = disk
    folder = str(tmp_path / "folder")
    name, other = f"{folder}/name", f"{folder}/other"

    files.make_directory(folder)
    handle = files.open(name, write=True, create=True)
    assert files.write(handle, [b"ab", b"cdef"], 0) == 6
    files.truncate(handle, 5)
    files.sync(handle)
    files.sync_directory(folder)
    assert (files.size(handle), files.read(handle, 3, 2)) == (5, b"cde")
    files.close(handle)
    files.rename(name, other)

    assert files.list(folder) == ["other"]
    assert (files.exists(name), files.exists(other)) == (False, True)
    files.remove(other)
    files.remove_tree(folder)
    assert not files.exists(folder)
    assert disk.calls == {
        "make_directory": 1,
        "create": 1,
        "write": 1,
        "truncate": 1,
        "sync": 1,
        "sync_directory": 1,
        "rename": 1,
        "remove": 1,
        "remove_tree": 1,
    }


def test_a_full_disk_takes_half_of_a_write(disk: FaultyDisk, tmp_path: Path) -> None:
    disk.make_directory(str(tmp_path))
    handle = disk.open(str(tmp_path / "name"), write=True, create=True)
    disk.fill(times=1)

    with pytest.raises(OSError) as caught:
        disk.write(handle, [b"ab", b"cdef"], 0)

    assert code_of(caught) == errno.ENOSPC
    assert disk.read(handle, 10, 0) == b"abc"
    assert disk.write(handle, [b"abcdef"], 0) == 6
    disk.close(handle)


def test_a_full_disk_makes_no_file_until_it_is_healed(
    disk: FaultyDisk, tmp_path: Path
) -> None:
    disk.make_directory(str(tmp_path))
    name = str(tmp_path / "name")
    disk.fill()

    for _ in range(2):
        with pytest.raises(OSError):
            disk.open(name, write=True, create=True)
    disk.heal()

    disk.close(disk.open(name, write=True, create=True))
    disk.fill()
    disk.close(disk.open(name, write=True, create=True))  # it is there


def test_syncs_fail_as_often_as_said(disk: FaultyDisk, tmp_path: Path) -> None:
    disk.make_directory(str(tmp_path))
    handle = disk.open(str(tmp_path / "name"), write=True, create=True)
    disk.fail_syncs(times=2)

    for _ in range(2):
        with pytest.raises(OSError) as caught:
            disk.sync(handle)
        assert code_of(caught) == errno.EIO

    disk.sync(handle)
    disk.close(handle)
