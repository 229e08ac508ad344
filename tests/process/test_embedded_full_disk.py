"""A program whose disk fills up loses nothing, and goes on when there is room.

On a small file system of its own (a tmpfs mounted over the data directory) where
mounting is allowed, and by a limit on file sizes everywhere.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.log import verify
from tests.process.embedded_process import Program, events_of, program

pytestmark = pytest.mark.slow

ROOM = 8 << 20


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A data directory on a file system of its own."""
    folder = tmp_path / "data"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", str(folder)]
    try:
        subprocess.run(mount, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("component: tmpfs mount (not permitted)")
    try:
        yield folder
    finally:
        # Lazily: a failed test may still hold a file there.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_loses_nothing_and_handlers_go_on_when_there_is_room(
    small_disk: Path,
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(ROOM // 4 * 3))
    with program("embedded_full_disk", small_disk) as maths:
        count = fill_and_heal(maths, ballast.unlink)

    check(small_disk, count)


def test_a_limit_on_file_sizes_loses_nothing_and_handlers_go_on_without_it(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with program("embedded_full_disk", data) as maths:
        limits = resource.prlimit(maths.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(maths.pid, resource.RLIMIT_FSIZE, (1_000_000, limits[1]))

        def heal() -> None:
            resource.prlimit(maths.pid, resource.RLIMIT_FSIZE, limits)

        count = fill_and_heal(maths, heal)

    check(data, count)


def fill_and_heal(maths: Program, heal: Callable[[], None]) -> int:
    """Wait until it is full, make room, let it go on; how many events it published."""
    assert maths.line() == "full"
    heal()
    assert maths.line().startswith("stored ")
    os.kill(maths.pid, signal.SIGUSR1)
    *_, last = maths.lines()
    assert last.startswith("settled "), last
    assert maths.wait() == 0
    return int(last.split()[1])


def check(data: Path, count: int) -> None:
    numbers = [int(event.payload) for event in events_of(data, "numbers")]
    squares = [int(event.payload) for event in events_of(data, "squares")]
    assert numbers == list(range(count))
    assert sorted(squares) == [number**2 for number in range(count)]
    assert not events_of(data, "$dead-letters")
    assert not verify(data).damages
