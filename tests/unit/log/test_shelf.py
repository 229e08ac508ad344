from __future__ import annotations

from pathlib import Path

import pytest

from penstock.files import Files
from penstock.log.index import Index
from penstock.log.shelf import Shelf
from tests.unit.log.faults import FaultyFiles


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    for name in "abc":
        (tmp_path / name).write_text(name)
    return [str(tmp_path / name) for name in "abc"]


def test_file_is_opened_once(paths: list[str]) -> None:
    disk = FaultyFiles()
    shelf = Shelf(disk)

    handles = {shelf.handle(paths[0]) for _ in range(3)}

    assert len(handles) == 1
    assert disk.count("open") == 1
    shelf.close()


def test_file_used_longest_ago_is_closed_over_the_limit(paths: list[str]) -> None:
    disk = FaultyFiles()
    shelf = Shelf(disk, limit=2)
    for path in (paths[0], paths[1], paths[0], paths[2]):
        shelf.handle(path)

    shelf.handle(paths[0])
    before = disk.count("open")
    shelf.handle(paths[1])

    assert (before, disk.count("open")) == (3, 4)
    shelf.close()
    assert disk._paths == {}


def test_dropped_file_is_opened_anew(paths: list[str]) -> None:
    disk = FaultyFiles()
    shelf = Shelf(disk)
    shelf.handle(paths[0])
    Path(paths[0]).unlink()
    Path(paths[0]).write_text("new")

    shelf.drop(paths[0])
    shelf.drop(paths[1])

    assert disk.read(shelf.handle(paths[0]), 9, 0) == b"new"
    shelf.close()


def test_missing_file_is_not_remembered(tmp_path: Path) -> None:
    shelf = Shelf(Files())

    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            shelf.handle(str(tmp_path / "missing"))

    shelf.close()


def test_index_is_made_once_until_it_is_dropped_or_crowded_out() -> None:
    made: list[str] = []
    shelf = Shelf(Files(), limit=2)

    def index(path: str) -> None:
        def make() -> Index:
            made.append(path)
            return Index(length=0, end_offset=0)

        shelf.index(path, make)

    for path in ("a", "b", "a", "c", "a", "b"):
        index(path)
    shelf.drop("a")
    index("a")

    assert made == ["a", "b", "c", "b", "a"]
    shelf.close()
    index("b")
    assert made[-1] == "b"
