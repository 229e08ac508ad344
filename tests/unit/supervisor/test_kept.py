from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from penstock.errors import OtherStore, StoreTaken
from penstock.store.store import Store
from penstock.supervisor import kept
from penstock.supervisor.part import Places

A = "mongodb://me:secret@h/a?replicaSet=rs0"
B = "postgresql://me@h/b"


class Counting:
    """As much of a store as is asked for here."""

    place = "mongodb://h/a"

    def __init__(self, **counts: int) -> None:
        self._counts = counts
        self.prepared: list[str] = []

    def prepare(self, collections: Sequence[str]) -> None:
        self.prepared += collections

    def count(self, collection: str) -> int:
        return self._counts.get(collection, 0)


def store(**counts: int) -> Any:
    return cast(Store, Counting(**counts))


@pytest.fixture
def places(tmp_path: Path) -> Places:
    found = Places(tmp_path / "data")
    found.make()
    return found


def test_a_new_directory_takes_any_store(places: Places) -> None:
    for url in (None, A, B):
        kept.check_store(places, url)


@pytest.mark.parametrize(("first", "other"), [(A, B), (None, A), (A, None)])
def test_a_directory_belongs_to_its_store(
    places: Places, first: str | None, other: str | None
) -> None:
    kept.prepare(places, store(), first)

    kept.check_store(places, first)
    with pytest.raises(OtherStore) as caught:
        kept.check_store(places, other)
    assert "secret" not in str(caught.value) + places.which_store.read_text()


def test_a_directory_from_before_had_a_store_of_its_own(places: Places) -> None:
    (places.store / "cluster").mkdir()

    kept.check_store(places, None)
    with pytest.raises(OtherStore, match="its own PostgreSQL"):
        kept.check_store(places, A)


def test_what_was_there_before_the_first_run_is_remembered(places: Places) -> None:
    kept.prepare(places, store(), A)
    kept.prepare(places, store(tweets=5), A)

    assert kept.before(places) == {"tweets": 0, "users": 0, "users_engagements": 0}


def test_a_store_that_is_filled_belongs_to_another_run(places: Places) -> None:
    with pytest.raises(StoreTaken, match="5 tweets"):
        kept.prepare(places, store(tweets=5), A)
