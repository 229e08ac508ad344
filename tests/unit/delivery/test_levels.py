from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from penstock.delivery import levels
from penstock.delivery.levels import Levels, has_priorities
from penstock.delivery.pages import Pages
from penstock.log import Batch, Columns, frame_of
from tests.unit.delivery.scene import Scene


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "BLOCK", 4)
    monkeypatch.setattr(levels, "_REMEMBERED", 2)


def index_of(scene: Scene, first: int = 0) -> Levels:
    """An index of topic t, filled from the log."""
    index = Levels("t", Pages(scene.log, 1), first)
    for batch in scene.log.read("t", first):
        index.add(batch)
    return index


def walk(index: Levels, level: int) -> list[int]:
    """All events of a level, one after the other."""
    found = []
    at = index.next_at(level, 0)
    while at is not None:
        found.append(at)
        at = index.next_at(level, at + 1)
    return found


def test_levels_come_highest_first_and_there_is_always_zero() -> None:
    scene = Scene()
    scene.publish(3, 200, 3)

    assert index_of(scene).levels() == [200, 3, 0]


def test_next_event_of_a_level_is_found_over_many_blocks() -> None:
    random = Random(1)
    priorities = [random.choice([0, 0, 0, 1, 2, 9]) for _ in range(100)]
    scene = Scene()
    for lo, hi in pairwise([0, 1, 5, 9, 30, 31, 77, 100]):
        scene.publish(*priorities[lo:hi])

    index = index_of(scene)

    for level in (0, 1, 2, 9):
        wanted = [at for at, one in enumerate(priorities) if one == level]
        assert walk(index, level) == wanted
    assert index.next_at(7, 0) is None
    assert index.end == 100


def test_events_before_the_first_priority_are_of_level_zero() -> None:
    scene = Scene()
    scene.publish(0, 0)
    scene.publish(1, 0)

    index = index_of(scene, 2)

    assert walk(index, 0) == [0, 1, 3]
    assert walk(index, 1) == [2]


def test_batch_that_was_taken_up_in_part_is_not_taken_up_twice() -> None:
    scene = Scene()
    scene.publish(1, 1, 1)
    (batch,) = scene.log.read("t", 0)
    index = Levels("t", scene.broker.pages, 0)
    index.end = 2
    index.add(batch)

    assert walk(index, 1) == [2]


def test_block_that_was_begun_before_a_start_goes_on() -> None:
    scene = Scene()
    scene.publish(1, 1)
    index = index_of(scene)
    blocks, end = index.blocks, index.end

    index = Levels("t", scene.broker.pages, 0)
    index.blocks, index.end = blocks, end
    assert walk(index, 1) == [0, 1]
    scene.publish(1, 1, 1)
    index.add(scene.log.read("t", 2)[0])

    assert walk(index, 1) == [0, 1, 2, 3, 4]


def test_lists_of_old_blocks_are_remembered_within_a_limit() -> None:
    scene = Scene()
    scene.publish(*[1] * 20)
    index = index_of(scene)

    walk(index, 1)

    assert list(index._lists) == [(1, 2), (1, 3)]


@pytest.mark.parametrize(
    ("priorities", "has"), [(None, False), ([0, 0], False), ([0, 1], True)]
)
def test_batch_has_priorities_if_one_is_above_zero(
    priorities: list[int] | None, has: bool
) -> None:
    columns = Columns([b"a", b"b"], priorities=priorities)

    batch = Batch.of("t", frame_of(columns, 0, bytes(16)))

    assert has_priorities(batch) is has
