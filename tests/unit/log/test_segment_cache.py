from __future__ import annotations

from pathlib import Path

import pytest

from penstock.files import Files
from penstock.log.index import Index
from penstock.log.segment_cache import SegmentCache
from tests.unit.log.faults import FaultyFiles


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    for name in "abc":
        (tmp_path / name).write_text(name)
    return [str(tmp_path / name) for name in "abc"]


def test_file_is_opened_once(paths: list[str]) -> None:
    disk = FaultyFiles()
    segment_cache = SegmentCache(disk)

    handles = {segment_cache.handle(paths[0]) for _ in range(3)}

    assert len(handles) == 1
    assert disk.count("open") == 1
    segment_cache.close()


def test_file_used_longest_ago_is_closed_over_the_limit(paths: list[str]) -> None:
    disk = FaultyFiles()
    segment_cache = SegmentCache(disk, limit=2)
    for path in (paths[0], paths[1], paths[0], paths[2]):
        segment_cache.handle(path)

    segment_cache.handle(paths[0])
    before = disk.count("open")
    segment_cache.handle(paths[1])

    assert (before, disk.count("open")) == (3, 4)
    segment_cache.close()
    assert disk._paths == {}


def test_dropped_file_is_opened_anew(paths: list[str]) -> None:
    disk = FaultyFiles()
    segment_cache = SegmentCache(disk)
    segment_cache.handle(paths[0])
    Path(paths[0]).unlink()
    Path(paths[0]).write_text("new")

    segment_cache.drop(paths[0])
    segment_cache.drop(paths[1])

    assert disk.read(segment_cache.handle(paths[0]), 9, 0) == b"new"
    segment_cache.close()


def test_missing_file_is_not_remembered(tmp_path: Path) -> None:
    segment_cache = SegmentCache(Files())

    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            segment_cache.handle(str(tmp_path / "missing"))

    segment_cache.close()


def test_index_is_made_once_until_it_is_dropped_or_crowded_out() -> None:
    made: list[str] = []
    segment_cache = SegmentCache(Files(), limit=2)

    def index(path: str) -> None:
        def make() -> Index:
            made.append(path)
            return Index(length=0, end_offset=0)

        segment_cache.index(path, make)

    for path in ("a", "b", "a", "c", "a", "b"):
        index(path)
    segment_cache.drop("a")
    index("a")

    assert made == ["a", "b", "c", "b", "a"]
    segment_cache.close()
    index("b")
    assert made[-1] == "b"


def test_index_of_a_file_goes_when_it_is_closed_for_others(paths: list[str]) -> None:
    """Another file may have its name by the time when it is opened again."""
    segment_cache = SegmentCache(FaultyFiles(), limit=2)
    first, second = (Index(length=at, end_offset=0) for at in (1, 2))
    segment_cache.index(paths[0], lambda: first)

    for path in paths:
        segment_cache.handle(path)

    assert segment_cache.index(paths[0], lambda: second) is second
    segment_cache.close()
