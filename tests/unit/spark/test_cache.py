from __future__ import annotations

from pathlib import Path

import pytest

from penstock.spark import cache


def fill(fresh: Path) -> None:
    (fresh / "file").write_text("content")


def test_the_cache_is_where_the_user_keeps_such_things(tmp_path: Path) -> None:
    given = cache.directory({"XDG_CACHE_HOME": str(tmp_path)})

    assert given == tmp_path / "penstock"
    assert cache.directory({}) == Path.home() / ".cache" / "penstock"


def test_a_directory_is_made_once(tmp_path: Path) -> None:
    kept = tmp_path / "new" / "cache"
    first = cache.made(kept, "name", "content", fill)
    (first / "file").write_text("kept")

    again = cache.made(kept, "name", "content", fill)

    assert again == first
    assert (again / "file").read_text() == "kept"
    assert [path.name for path in kept.iterdir()] == [first.name]


def test_its_place_is_known_before(tmp_path: Path) -> None:
    place = cache.place(tmp_path, "name", "content")

    assert not place.exists()
    assert cache.made(tmp_path, "name", "content", fill) == place


def test_another_content_is_another_directory(tmp_path: Path) -> None:
    assert cache.made(tmp_path, "name", "a", fill) != cache.made(
        tmp_path, "name", "b", fill
    )


def test_what_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    def fails(fresh: Path) -> None:
        fill(fresh)
        raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        cache.made(tmp_path, "name", "content", fails)

    assert list(tmp_path.iterdir()) == []


def test_who_comes_second_takes_what_is_there(tmp_path: Path) -> None:
    def overtaken(fresh: Path) -> None:
        fill(fresh)
        (cache.made(tmp_path, "name", "content", fill) / "file").write_text("first")

    target = cache.made(tmp_path, "name", "content", overtaken)

    assert (target / "file").read_text() == "first"
    assert list(tmp_path.iterdir()) == [target]


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    target = cache.made(tmp_path, "name", "content", fill)
    (target / "file").unlink()
    target.rmdir()
    target.write_text("in the way")

    with pytest.raises(NotADirectoryError, match="is in the way"):
        cache.made(tmp_path, "name", "content", fill)
