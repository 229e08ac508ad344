"""A server whose disk fills up: publishers hear of it, and it goes on afterwards.

On a small file system of its own (a tmpfs mounted over the data directory) where
mounting is allowed, and by a limit on file sizes everywhere.
"""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.log import Reader
from tests.serving import Serving, serving
from tests.wire_client import Wire

pytestmark = pytest.mark.slow

ROOM = 8 << 20
LOST = "error: not stored: the write failed, publish it again"


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


def test_a_full_disk_is_told_and_the_server_goes_on_when_there_is_room(
    tmp_path: Path, small_disk: Path
) -> None:
    with serving(tmp_path, "--no-maze", "--no-native") as server:
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(ROOM // 4 * 3))

        confirmed = fill_and_heal(server, ballast.unlink)

        assert server.stop() == 0
    assert numbers_in(server.data) == confirmed


def test_a_limit_on_file_sizes_is_told_and_the_server_goes_on_without_it(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, "--no-maze", "--no-native") as server:
        limits = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (500_000, limits[1]))

        def heal() -> None:
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, limits)

        confirmed = fill_and_heal(server, heal)

        assert server.stop() == 0
    assert numbers_in(server.data) == confirmed


def fill_and_heal(server: Serving, heal: Callable[[], None]) -> list[int]:
    """Publish until it fails, make room, go on; the numbers that were confirmed."""
    with (
        Wire(server.ports["line"]) as writer,
        Wire(server.ports["publisher"]) as press,
        Wire(server.ports["consumer"]) as anna,
    ):
        anna.say("log anna", '{"type":"SUB","topic":"other"}')
        assert anna.lines(3)[2] == "OK"
        writer.say("confirm on")
        writer.lines(2)

        confirmed: list[int] = []
        while publish(writer, len(confirmed)):
            confirmed.append(len(confirmed))
        assert confirmed, "it was full from the beginning"
        pub = json.dumps({"type": "PUB", "topic": "other", "msg": "x" * 50_000})
        assert press.ask(pub).startswith('ERROR "not stored')
        # Who does not need the disk is served meanwhile.
        assert anna.ask("nonsense") == "INVALID JSON"
        heal()

        for number in range(len(confirmed), len(confirmed) + 10):
            assert publish(writer, number), "it does not go on"
            confirmed.append(number)
        assert press.ask(pub).endswith('"type":"PUBREC"}')
    return confirmed


def publish(writer: Wire, number: int) -> bool:
    """Publish one event; whether it was confirmed."""
    answer = writer.ask(f'pub t {{"id":{number},"msg":"{"x" * 50_000}"}}')
    assert answer == LOST or answer.startswith(f"published t {number} "), answer
    return answer != LOST


def numbers_in(data: Path) -> list[int]:
    found: list[int] = []
    offset = 0
    with Reader.open(data) as reader:
        while batches := reader.read("t", offset):
            found += [int(id_) for batch in batches for id_ in batch.ids()]
            offset = batches[-1].end_offset
    return found
