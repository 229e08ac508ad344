"""What the unit tests of the log share: a disk that fails on order, and readers."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.files import Buffer, Files
from penstock.log import BrokerLog, Log, Record
from penstock.log.batch import Batch
from penstock.log.journal import FileJournal


def journal_of(log: Log) -> FileJournal:
    journal = log.intake.journal
    assert isinstance(journal, FileJournal)
    return journal


@dataclass(slots=True)
class Fault:
    """Calls of this name on paths with this part fail, so many times."""

    call: str
    part: str
    error: int
    times: int
    half: bool
    skip: int


class FaultyFiles(Files):
    """The real file system, until told otherwise; it remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str]] = []
        self._faults: list[Fault] = []
        self._paths: dict[int, str] = {}

    def fail(
        self,
        call: str,
        part: str = "",
        *,
        error: int = errno.ENOSPC,
        times: int = 1,
        half: bool = False,
        skip: int = 0,
    ) -> None:
        self._faults.append(Fault(call, part, error, times, half, skip))

    def heal(self) -> None:
        self._faults.clear()

    def count(self, call: str, part: str = "") -> int:
        return sum(name == call and part in path for name, path in self.calls)

    def open(self, path: str, *, write: bool = False, create: bool = False) -> int:
        self._meet("create" if create else "open", path)
        handle = super().open(path, write=write, create=create)
        self._paths[handle] = path
        return handle

    def close(self, handle: int) -> None:
        self._paths.pop(handle)
        super().close(handle)

    def read(self, handle: int, length: int, position: int) -> bytes:
        self._meet("read", self._paths[handle])
        return super().read(handle, length, position)

    def write(self, handle: int, buffers: Sequence[Buffer], position: int) -> int:
        fault = self._matching("write", self._paths[handle])
        if fault is not None:
            if fault.half:
                data = b"".join(buffers)
                super().write(handle, [data[: len(data) // 2]], position)
            raise _error(fault, self._paths[handle])
        return super().write(handle, buffers, position)

    def sync(self, handle: int) -> None:
        self._meet("sync", self._paths[handle])
        super().sync(handle)

    def list(self, path: str) -> list[str]:
        self._meet("list", path + "/")
        return super().list(path)

    def truncate(self, handle: int, length: int) -> None:
        self._meet("truncate", self._paths[handle])
        super().truncate(handle, length)

    def make_directory(self, path: str) -> None:
        self._meet("make_directory", path)
        super().make_directory(path)

    def sync_directory(self, path: str) -> None:
        self._meet("sync_directory", path)
        super().sync_directory(path)

    def sync_all(self, handle: int) -> None:
        self._meet("sync_all", self._paths[handle])
        super().sync_all(handle)

    def rename(self, source: str, target: str) -> None:
        self._meet("rename", target)
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self._meet("remove", path)
        super().remove(path)

    def _meet(self, call: str, path: str) -> None:
        fault = self._matching(call, path)
        if fault is not None:
            raise _error(fault, path)

    def _matching(self, call: str, path: str) -> Fault | None:
        self.calls.append((call, path))
        for fault in self._faults:
            if fault.call == call and fault.part in path and fault.times:
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                return fault
        return None


class Counter:
    """An owner: the sum of its records, one byte each."""

    def __init__(self) -> None:
        self.total = 0
        self.restored: list[bytes] = []
        self.replayed: list[Record] = []

    def restore(self, snapshot: bytes) -> None:
        self.restored.append(snapshot)
        self.total = int(snapshot)

    def replay(self, record: Record) -> None:
        self.replayed.append(record)
        self.total += record.data[0]

    def collect(self) -> list[tuple[bytes, bool]]:
        return []

    def taken_back(self) -> None:
        pass

    def snapshot(self) -> bytes:
        return str(self.total).encode()


def batches(log: BrokerLog, topic: str, max_bytes: int = 1 << 20) -> Iterator[Batch]:
    """All batches of a topic, read as a client reads: on from where it was."""
    offset = log.topic(topic).start_offset
    while found := log.read(topic, offset, max_bytes):
        yield from found
        offset = found[-1].end_offset


def payloads(log: BrokerLog, topic: str, max_bytes: int = 1 << 20) -> list[bytes]:
    found = batches(log, topic, max_bytes)
    return [payload for batch in found for payload in batch.payloads()]


def offsets(log: Log, topic: str) -> list[int]:
    return [offset for batch in batches(log, topic) for offset in batch.offsets()]


def flip(path: str | os.PathLike[str], position: int, bit: int = 0) -> None:
    """Flip one bit of a file, as a bad disk does."""
    handle = os.open(path, os.O_RDWR)
    try:
        byte = os.pread(handle, 1, position)[0]
        os.pwrite(handle, bytes([byte ^ 1 << bit]), position)
    finally:
        os.close(handle)


def flipped(data: bytes) -> Iterator[tuple[str, bytes]]:
    """``data`` with one bit flipped, for every bit, and which one it was."""
    for position in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[position] ^= 1 << bit
            yield f"bit {bit} of byte {position}", bytes(changed)


def zeroed(data: bytes) -> Iterator[tuple[int, bytes]]:
    """``data`` torn at every position and completed by zeros, where that differs."""
    for length in range(len(data)):
        torn = data[:length] + bytes(len(data) - length)
        if torn != data:
            yield length, torn


def _error(fault: Fault, path: str) -> OSError:
    return OSError(fault.error, os.strerror(fault.error), path)
