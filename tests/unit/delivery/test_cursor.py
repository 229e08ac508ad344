from __future__ import annotations

import pytest

from penstock.delivery.cursor import ALL, Cursor
from penstock.log import Columns, LogOptions
from penstock.model.policy import Order
from tests.unit.delivery.scene import Scene, offsets

ORDERS = pytest.mark.parametrize("order", ["log", "priority"])


def cursor_of(scene: Scene, order: Order = "priority", start: int = 0) -> Cursor:
    cursor = Cursor("t", order, start)
    cursor.wire(scene.broker.pages, scene.broker.levels.get)
    return cursor


def walk(cursor: Cursor) -> list[int]:
    """Pick events until there is none."""
    found = []
    while (following := cursor.next()) is not None:
        portion = cursor.pick(-following[0], following[1])
        if portion is not None:
            found += offsets([portion])
    return found


@ORDERS
def test_events_without_priority_go_as_they_lie_in_the_log(order: Order) -> None:
    scene = Scene()
    scene.publish(0, 0)
    scene.publish(0)
    cursor = cursor_of(scene, order)

    assert cursor.plain
    assert offsets(cursor.runs(2)) == [0, 1]
    assert (cursor.unsent(), cursor.lowest()) == (1, 2)
    assert cursor.next() == (-cursor.plain_level, 2)
    assert offsets(cursor.runs(9)) == [2]
    assert (cursor.unsent(), cursor.lowest(), cursor.next()) == (0, 3, None)
    assert offsets(cursor.runs(9)) == []


def test_highest_level_goes_first_over_the_whole_backlog() -> None:
    scene = Scene()
    scene.publish(0, 3)
    scene.publish(9, 0, 3)

    cursor = cursor_of(scene)

    assert not cursor.plain
    assert cursor.next() == (-9, 2)
    assert walk(cursor) == [2, 1, 4, 0, 3]


def test_log_order_does_not_look_at_levels() -> None:
    scene = Scene()
    scene.publish(0, 9)

    cursor = cursor_of(scene, "log")

    assert cursor.plain
    assert offsets(cursor.runs(9)) == [0, 1]
    assert (cursor.level_of(9), cursor_of(scene).level_of(9)) == (ALL, 9)


def test_first_priority_of_a_topic_keeps_the_place() -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    cursor = cursor_of(scene)
    assert offsets(cursor.runs(1)) == [0]

    scene.publish(0, 5)

    assert cursor.unsent() == 4
    assert walk(cursor) == [4, 1, 2, 3]


def test_lowest_unsent_event_is_that_of_the_level_farthest_behind() -> None:
    scene = Scene()
    scene.publish(0, 5, 0, 5)
    cursor = cursor_of(scene, start=1)

    assert (cursor.lowest(), cursor.unsent()) == (1, 3)
    cursor.pick(5, 1)
    assert (cursor.lowest(), cursor.unsent()) == (2, 2)
    walk(cursor)
    assert (cursor.lowest(), cursor.unsent()) == (4, 0)


def test_taking_stops_at_about_so_many_bytes() -> None:
    scene = Scene()
    scene.broker.publish("t", Columns([bytes(1000)] * 10))
    scene.commit()
    scene.publish(0)
    cursor = cursor_of(scene, "log")

    assert offsets(cursor.runs(99, 3000)) == [0, 1, 2]
    assert offsets(cursor.runs(99, 1)) == [3]


# Events that are gone


@ORDERS
@pytest.mark.parametrize("level", [0, 5])
@pytest.mark.parametrize("start", [2, 3, 5, 6])
def test_trimmed_events_are_neither_sent_nor_counted(
    order: Order, level: int, start: int
) -> None:
    scene = Scene()
    scene.publish(0, level)
    scene.publish(0, 0, level, 0)
    cursor = cursor_of(scene, order)
    scene.log.trim("t", start)

    assert (cursor.lowest(), cursor.unsent()) == (start, 6 - start)
    found = offsets(cursor.runs(9)) if cursor.plain else walk(cursor)

    assert sorted(found) == list(range(start, 6))
    assert (cursor.lowest(), cursor.unsent()) == (6, 0)


def test_trimmed_events_are_counted_as_gone_when_priorities_come() -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    cursor = cursor_of(scene)
    scene.log.trim("t", 2)
    assert offsets(cursor.runs(1)) == [2]

    scene.publish(5, 0)

    assert cursor.unsent() == 2


@ORDERS
def test_compacted_events_are_passed_over(order: Order) -> None:
    scene = Scene(log=LogOptions(tail_cache_bytes=0))
    scene.keyed(b"a", b"b", b"c")
    scene.keyed(b"b")
    scene.publish(0)
    scene.log.compact("t")
    cursor = cursor_of(scene, order)

    assert offsets(cursor.runs(99)) == [0, 2, 3, 4]
    assert cursor.unsent() == 0


def test_compacted_event_of_a_level_is_passed_over() -> None:
    scene = Scene(log=LogOptions(tail_cache_bytes=0))
    columns = Columns([b"1", b"2", b"3"], keys=[b"a", b"b", b"c"], priorities=[5] * 3)
    scene.broker.publish("t", columns)
    scene.commit()
    scene.log.roll("t")
    scene.keyed(b"b")
    scene.publish(0)
    cursor = cursor_of(scene)
    assert cursor.next() == (-5, 0)
    scene.log.compact("t")
    scene.broker.pages.forget("t")

    assert cursor.find(1) is None
    assert cursor.pick(5, 1) is None
    assert walk(cursor) == [2, 3, 4]


@pytest.mark.parametrize("offset", [0, 3])
def test_event_that_is_not_there_is_not_found(offset: int) -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    scene.log.trim("t", 1)
    cursor = cursor_of(scene)

    assert cursor.find(offset) is None
    assert cursor.find(1) is not None


# Moving


@ORDERS
def test_seeking_begins_anew(order: Order) -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    cursor = cursor_of(scene, order)
    list(cursor.runs(3))

    cursor.seek(1)

    assert cursor.unsent() == 2
    assert offsets(cursor.runs(9)) == [1, 2]


@pytest.mark.parametrize(("start", "clamped"), [(5, 3), (3, 3), (1, 1)])
def test_start_comes_back_to_the_end_of_a_shorter_topic(
    start: int, clamped: int
) -> None:
    cursor = Cursor("t", "log", start)

    cursor.clamp(3)

    assert cursor.start == clamped


@ORDERS
@pytest.mark.parametrize("start", [0, 2, 9])
def test_what_is_unsent_is_the_same_when_it_is_told_at_once(
    order: Order, start: int
) -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    cursor = cursor_of(scene, order, start)

    for _ in range(3):
        ends = scene.broker.pages.start("t"), scene.broker.pages.end("t")
        assert cursor.unsent_plainly(*ends) == cursor.unsent()
        offsets(cursor.runs(1))
