from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from penstock.direct_write import BLOCK_BYTES, CHUNK_BYTES
from penstock.files import Buffer, Files
from penstock.log import Columns, Log, LogOptions

BEFORE = bytes(3 * BLOCK_BYTES)


def written(path: Path, buffers: Sequence[Buffer], position: int) -> bytes:
    """A file that held zeros, with this written into it."""
    path.write_bytes(BEFORE)
    files = Files()
    handle = files.open(str(path), write=True)
    try:
        flags = fcntl.fcntl(handle, fcntl.F_GETFL)
        files.write_direct(handle, buffers, position)
        assert fcntl.fcntl(handle, fcntl.F_GETFL) == flags
    finally:
        files.close(handle)
    return path.read_bytes()


def expected(buffers: Sequence[Buffer], position: int) -> bytes:
    data = b"".join(buffers)
    content = bytearray(max(len(BEFORE), position + len(data)))
    content[position : position + len(data)] = data
    return bytes(content)


def pieces(length: int, seed: int) -> list[Buffer]:
    """So many bytes in pieces of all sizes, the empty one too."""
    random, found = Random(seed), list[Buffer]([b""])
    while length:
        size = min(random.choice([1, 64, 1000, 5000, 300_000]), length)
        found.append(memoryview(random.randbytes(size)))
        length -= size
    return found


@pytest.mark.parametrize("position", [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, 9000])
@pytest.mark.parametrize(
    "length", [0, 1, BLOCK_BYTES, 2 * BLOCK_BYTES - 1, 50_000, 2 * CHUNK_BYTES + 77]
)
def test_what_is_written_past_the_cache_is_what_was_given(
    tmp_path: Path, position: int, length: int
) -> None:
    buffers = pieces(length, seed=length + position)

    assert written(tmp_path / "f", buffers, position) == expected(buffers, position)


@pytest.fixture
def flags_of_writes(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Bytes of each write, and its place if it goes past the cache."""
    real, seen = os.pwrite, list[tuple[int, int]]()

    def pwrite(handle: int, data: memoryview, position: int) -> int:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_DIRECT:
            seen.append((len(data), position))
        return real(handle, data, position)

    monkeypatch.setattr(os, "pwrite", pwrite)
    return seen


def test_whole_blocks_alone_go_past_the_cache(
    tmp_path: Path, flags_of_writes: list[tuple[int, int]]
) -> None:
    buffers = pieces(CHUNK_BYTES + 3 * BLOCK_BYTES, seed=1)

    content = written(tmp_path / "f", buffers, 100)

    assert content == expected(buffers, 100)
    if not flags_of_writes:
        pytest.skip("component: O_DIRECT (not on the file system of the tests)")
    assert flags_of_writes == [
        (CHUNK_BYTES, BLOCK_BYTES),
        (2 * BLOCK_BYTES, BLOCK_BYTES + CHUNK_BYTES),
    ]


@pytest.mark.parametrize("when", ["asked for", "used", "used again"])
def test_a_file_system_without_such_writes_gets_usual_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    real_write, real_fcntl, calls = os.pwrite, fcntl.fcntl, list[int]()

    def pwrite(handle: int, data: memoryview, position: int) -> int:
        calls.append(position)
        if when == "used" or len(calls) > 1:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real_write(handle, data, position)

    def asked(handle: int, command: int, flags: int = 0) -> int:
        if when == "asked for" and flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return real_fcntl(handle, command, flags)

    monkeypatch.setattr(os, "pwrite", pwrite)
    monkeypatch.setattr(fcntl, "fcntl", asked)
    buffers = pieces(3 * CHUNK_BYTES, seed=2)

    assert written(tmp_path / "f", buffers, 5) == expected(buffers, 5)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_write_that_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def pwrite(handle: int, data: memoryview, position: int) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "pwrite", pwrite)

    with pytest.raises(OSError, match=os.strerror(code)) as caught:
        written(tmp_path / "f", pieces(CHUNK_BYTES, seed=3), 0)

    assert caught.value.errno == code


@pytest.mark.parametrize(("least", "direct"), [(100_000, True), (None, False)])
def test_a_log_writes_much_of_a_topic_past_the_cache(
    tmp_path: Path,
    flags_of_writes: list[tuple[int, int]],
    least: int | None,
    direct: bool,
) -> None:
    options = LogOptions(write_out_bytes=0, direct_write_bytes=least)
    payloads = [b"%06d" % number * 100 for number in range(1000)]
    with Log.open(tmp_path, options) as log:
        log.create_topic("t")
        for lo in range(0, len(payloads), 250):
            log.append("t", Columns(payloads[lo : lo + 250]))
            log.commit()
        log.append("t", Columns([b"little"]))
        log.commit()
    if direct and not flags_of_writes:
        pytest.skip("component: O_DIRECT (not on the file system of the tests)")

    assert bool(flags_of_writes) is direct
    with Log.open(tmp_path) as log:
        batches = log.read("t", 0, max_bytes=1 << 30)
        found = [one for batch in batches for one in batch.payloads()]
    assert found == [*payloads, b"little"]
