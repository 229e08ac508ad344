from __future__ import annotations

from pathlib import Path

import pytest

from penstock.supervisor.part import Places, read_json


def test_everything_is_below_one_directory(tmp_path: Path) -> None:
    places = Places(tmp_path / "data")

    places.make()

    files = [places.ready("a"), places.status("a"), places.log("a"), places.lock]
    assert all(one.parent.is_dir() for one in files)
    assert all(one.is_relative_to(tmp_path / "data" / "up") for one in files)
    assert places.store.is_dir() and places.checkpoints.is_dir()


def test_what_a_killed_run_has_left_is_removed(tmp_path: Path) -> None:
    places = Places(tmp_path / "data")
    places.make()
    places.sweep()
    (places.scratch / "left").mkdir()

    places.sweep()

    assert list(places.scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "found"),
    [(b'{"events": 1}', {"events": 1}), (b"{", {}), (b"[]", {}), (None, {})],
)
def test_what_a_part_says_is_read_if_it_makes_sense(
    tmp_path: Path, content: bytes | None, found: dict[str, object]
) -> None:
    path = tmp_path / "status.json"
    if content is not None:
        path.write_bytes(content)

    assert read_json(path) == found
