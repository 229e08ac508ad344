from __future__ import annotations

import pytest

from penstock.delivery import levels
from penstock.delivery.level_book import LevelBook, LeveledTopic
from penstock.log import Columns, Record
from penstock.log.rows import MAX_EVENTS
from tests.unit.delivery.scene import PRIORITY, RESTARTS, Scene


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "BLOCK", 4)


def found(scene: Scene) -> dict[int, list[int]]:
    """What the index of topic t holds, by level."""
    index = scene.broker.levels.get("t")
    assert index is not None
    every = range(index.end)
    return {
        level: [at for at in every if index.next_at(level, at) == at]
        for level in index.levels()
    }


def test_topic_without_priorities_has_no_index() -> None:
    scene = Scene()
    scene.publish(0, 0)

    assert scene.broker.levels.get("t") is None


def test_first_priority_begins_the_index() -> None:
    scene = Scene()
    scene.publish(0, 0)
    scene.publish(0, 4)
    scene.publish(0)

    assert found(scene) == {4: [3], 0: [0, 1, 2, 4]}


@RESTARTS
@pytest.mark.parametrize("checkpoint", [False, True])
def test_index_is_the_same_after_a_start(restart: str, checkpoint: bool) -> None:
    scene = Scene()
    scene.publish(0, 0)
    scene.publish(0, 4, 4)
    if checkpoint:
        scene.log.checkpoint()
    scene.publish(4, 1)
    scene.publish(0)

    scene.restart(restart)

    assert found(scene) == {4: [3, 4, 5], 1: [6], 0: [0, 1, 2, 7]}


@RESTARTS
def test_topic_that_got_its_first_priority_after_the_checkpoint(restart: str) -> None:
    scene = Scene()
    scene.publish(0, 0)
    scene.log.checkpoint()
    scene.publish(0)
    scene.publish(3)

    scene.restart(restart)

    assert found(scene) == {3: [3], 0: [0, 1, 2]}


def test_failed_events_are_not_in_the_index() -> None:
    scene = Scene()
    scene.publish(2)
    scene.broker.publish("t", Columns([b"lost"], priorities=[9]))
    scene.fail_commit()
    scene.publish(3)

    assert found(scene) == {3: [1], 2: [0], 0: []}


@RESTARTS
def test_another_topic_of_the_same_name_has_another_index(restart: str) -> None:
    scene = Scene()
    scene.publish(5)
    scene.log.checkpoint()
    scene.broker.delete_topic("t")
    scene.commit()
    scene.broker.create_topic("t")
    scene.publish(0)

    assert scene.broker.levels.get("t") is None
    scene.restart(restart)
    assert scene.broker.levels.get("t") is None
    scene.publish(6)
    assert found(scene) == {6: [1], 0: [0]}


def test_forgetting_what_has_no_index_is_nothing() -> None:
    LevelBook().forget("t")


def test_trimmed_events_are_not_read_again() -> None:
    scene = Scene()
    scene.publish(5, 0)
    scene.publish(7)
    scene.log.trim("t", 2)
    scene.restart("kill")

    assert scene.take(scene.subscribe(PRIORITY)) == [2]


def test_index_of_a_topic_that_was_cut_is_made_anew() -> None:
    scene = Scene()
    scene.publish(5, 5)
    scene.publish(6, 6)
    scene.log.checkpoint()
    snapshot = scene.broker.levels.snapshot()
    scene.log.truncate("t", 2)
    book = LevelBook()
    book.restore(snapshot)

    book.wire(scene.log, scene.broker.pages)

    index = book.get("t")
    assert index is not None
    assert (index.levels(), index.end) == ([5, 0], 2)


def test_book_has_no_records() -> None:
    book = LevelBook()

    book.replay(Record(kind=260, data=b"", group=1, time_ms=0))
    book.taken_back()

    assert not book.collect()


def test_row_of_a_topic_without_index_says_how_far_it_was_looked_at() -> None:
    assert LeveledTopic(7, 9) == LeveledTopic(7, 9, -1, {})


def test_index_takes_what_a_group_has_in_rows_and_frames_in_its_order() -> None:
    scene = Scene()
    scene.broker.create_topic("u")
    scene.commit()
    taker = scene.subscribe(PRIORITY)
    few = Columns([b"", b"", b""], 0, priorities=[9, 0, 8])
    many = Columns([b""] * (MAX_EVENTS + 1), 0, priorities=[7] * (MAX_EVENTS + 1))

    scene.broker.publish_rows(["t", "u", "t"], few)
    scene.broker.publish("t", many)
    scene.broker.publish_rows(["u", "t", "u"], few)
    scene.commit()

    last = MAX_EVENTS + 3
    assert scene.drain(taker) == [0, 1, *range(2, last), last]


def test_first_priority_comes_with_the_group_of_a_checkpoint() -> None:
    """Its frame is gathered with events that the checkpoint was looked at before."""
    scene = Scene()
    scene.publish(0)
    scene.publish(0)
    scene.broker.publish("t", Columns([b"", b""], 0, priorities=[0, 4]))
    scene.log.checkpoint_soon(keep=2)
    scene.commit()
    scene.log.store()

    scene.restart("kill")

    assert not scene.log.checkpoint_wanted
    assert found(scene) == {4: [3], 0: [0, 1, 2]}
