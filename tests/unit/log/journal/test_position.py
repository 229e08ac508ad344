from __future__ import annotations

from pathlib import Path

import pytest

from penstock.files import Files
from penstock.log.journal.position import PositionFile, read_position

GOLDEN = bytes.fromhex(
    "504e5350"  # magic "PNSP"
    "01000000"  # version, three zeros
    "0500000000000000"  # synced position
    "faffffffffffffff"  # the same inverted
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "position")


def test_bytes_of_the_file_are_those_of_the_table(path: str) -> None:
    file = PositionFile(Files(), path)

    file.publish(5)

    file.close()
    assert Path(path).read_bytes() == GOLDEN


def test_last_published_position_is_read(path: str) -> None:
    file = PositionFile(Files(), path)
    for position in (0, (1 << 64) - 1, 77):
        file.publish(position)

        assert read_position(Files(), path) == position

    file.close()


@pytest.mark.parametrize(
    ("what", "data"),
    [
        ("empty", b""),
        ("cut short", GOLDEN[:23]),
        ("zeros", bytes(24)),
        ("another magic", b"PNSX" + GOLDEN[4:]),
        ("another version", GOLDEN[:4] + b"\x02" + GOLDEN[5:]),
        ("torn between the two", GOLDEN[:8] + b"\x06" + GOLDEN[9:]),
        ("torn in the second", GOLDEN[:16] + bytes(8)),
    ],
)
def test_file_that_makes_no_sense_says_nothing(
    path: str, what: str, data: bytes
) -> None:
    Path(path).write_bytes(data)

    assert read_position(Files(), path) is None, what


def test_missing_file_says_nothing(path: str) -> None:
    assert read_position(Files(), path) is None


def test_torn_look_is_repeated(path: str) -> None:
    class Torn(Files):
        looks = 0

        def read(self, handle: int, length: int, position: int) -> bytes:
            self.looks += 1
            data = super().read(handle, length, position)
            return data[:16] + bytes(8) if self.looks == 1 else data

    Path(path).write_bytes(GOLDEN)

    assert read_position(Torn(), path) == 5
