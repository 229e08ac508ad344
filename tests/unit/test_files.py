from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock import files as files_module
from penstock.errors import DiskFull, WriteFailed
from penstock.files import (
    MAX_BUFFERS,
    Buffer,
    Files,
    read_file,
    remove_if_there,
    replace_file,
    write_error,
)


@pytest.fixture
def files() -> Files:
    return Files()


def written(files: Files, path: Path, buffers: Sequence[Buffer], position: int) -> int:
    handle = files.open(str(path), write=True, create=True)
    try:
        return files.write(handle, buffers, position)
    finally:
        files.close(handle)


def test_buffers_are_written_one_behind_the_other(files: Files, tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789")

    count = written(files, path, [b"ab", bytearray(b"c"), memoryview(b"de")], 3)

    assert count == 5
    assert path.read_bytes() == b"012abcde89"


def test_more_buffers_than_the_kernel_takes_are_written(
    files: Files, tmp_path: Path
) -> None:
    buffers = [b"%04d" % number for number in range(3 * MAX_BUFFERS)]

    count = written(files, tmp_path / "f", buffers, 0)

    assert count == len(b"".join(buffers))
    assert (tmp_path / "f").read_bytes() == b"".join(buffers)


def test_short_writes_are_continued(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwritev", lambda h, bs, at: real(h, b"".join(bs)[:3], at))
    monkeypatch.setattr(os, "pwrite", lambda h, data, at: real(h, data[:2], at))

    count = written(files, tmp_path / "f", [b"abcd", b"efgh"], 0)

    assert count == 8
    assert (tmp_path / "f").read_bytes() == b"abcdefgh"


@pytest.mark.parametrize(
    ("length", "position", "expected"),
    [(4, 2, b"2345"), (99, 8, b"89"), (4, 10, b""), (4, 99, b""), (0, 0, b"")],
)
def test_read_is_short_only_at_the_end(
    files: Files, tmp_path: Path, length: int, position: int, expected: bytes
) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    handle = files.open(str(tmp_path / "f"))

    data = files.read(handle, length, position)

    assert data == expected
    files.close(handle)


def test_short_reads_are_continued(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda h, n, at: real(h, min(n, 3), at))
    handle = files.open(str(tmp_path / "f"))

    assert files.read(handle, 8, 0) == b"01234567"
    assert files.read(handle, 99, 5) == b"56789"

    files.close(handle)


def test_file_is_created_only_when_asked(files: Files, tmp_path: Path) -> None:
    path = str(tmp_path / "f")

    for write in (False, True):
        with pytest.raises(FileNotFoundError):
            files.open(path, write=write)

    files.close(files.open(path, write=True, create=True))
    assert files.exists(path)


def test_file_opened_for_reading_cannot_be_written(
    files: Files, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(b"x")
    handle = files.open(str(tmp_path / "f"))

    with pytest.raises(OSError, match="Bad file descriptor"):
        files.write(handle, [b"y"], 0)

    files.close(handle)


def test_handles_are_not_inherited(files: Files, tmp_path: Path) -> None:
    handle = files.open(str(tmp_path / "f"), write=True, create=True)

    assert not os.get_inheritable(handle)

    files.close(handle)


def test_size_and_truncate(files: Files, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    handle = files.open(str(tmp_path / "f"), write=True)

    files.truncate(handle, 4)

    assert files.size(handle) == 4
    files.sync(handle)
    files.close(handle)


def test_directories(files: Files, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"

    files.make_directory(str(folder))
    files.make_directory(str(folder))
    files.sync_directory(str(folder))
    for name in ("2", "10", "1"):
        files.close(files.open(str(folder / name), write=True, create=True))

    assert files.list(str(folder)) == ["1", "10", "2"]
    files.rename(str(folder / "1"), str(folder / "2"))
    files.remove(str(folder / "10"))
    assert files.list(str(folder)) == ["2"]
    files.remove_tree(str(tmp_path / "a"))
    assert not files.exists(str(folder))


def test_replaced_file_is_there_whole(files: Files, tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    (tmp_path / "f.tmp").write_bytes(b"left by a crash, and longer")

    replace_file(files, path, b"old")
    replace_file(files, path, b"new one")

    assert read_file(files, path) == b"new one"
    assert files.list(str(tmp_path)) == ["f"]


def test_replacing_syncs_the_file_before_and_the_directory_after_the_rename(
    tmp_path: Path,
) -> None:
    calls: list[str] = []

    class Noting(Files):
        def sync(self, handle: int) -> None:
            calls.append("sync")

        def rename(self, source: str, target: str) -> None:
            calls.append("rename")
            super().rename(source, target)

        def sync_directory(self, path: str) -> None:
            calls.append(f"sync {Path(path).name}")

    replace_file(Noting(), str(tmp_path / "f"), b"x")

    assert calls == ["sync", "rename", f"sync {tmp_path.name}"]


def test_replacing_that_fails_leaves_the_old_file_and_no_open_handle(
    tmp_path: Path,
) -> None:
    closed: list[int] = []

    class Full(Files):
        def write(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self, handle: int) -> None:
            closed.append(handle)
            super().close(handle)

    (tmp_path / "f").write_bytes(b"old")

    with pytest.raises(OSError, match="No space"):
        replace_file(Full(), str(tmp_path / "f"), b"new")

    assert (tmp_path / "f").read_bytes() == b"old"
    assert len(closed) == 1


def test_remove_if_there(files: Files, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")

    remove_if_there(files, str(tmp_path / "f"))
    remove_if_there(files, str(tmp_path / "f"))

    assert files.list(str(tmp_path)) == []


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (errno.ENOSPC, DiskFull),
        (errno.EDQUOT, DiskFull),
        (errno.EFBIG, DiskFull),
        (errno.EIO, WriteFailed),
        (errno.EROFS, WriteFailed),
    ],
)
def test_full_disk_is_told_from_other_failures(
    code: int, kind: type[WriteFailed]
) -> None:
    error = write_error("f", "writing", OSError(code, os.strerror(code)))

    assert type(error) is kind
    assert error.reason == os.strerror(code)


def test_error_without_a_number_keeps_its_text() -> None:
    error = write_error("f", "writing", OSError("strange"))

    assert (type(error), error.reason) == (WriteFailed, "strange")


def test_buffer_limit_is_within_what_the_kernel_takes() -> None:
    assert os.sysconf("SC_IOV_MAX") >= files_module.MAX_BUFFERS
