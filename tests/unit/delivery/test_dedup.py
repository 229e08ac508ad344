from __future__ import annotations

import pytest

from penstock.broker.options import BrokerOptions
from penstock.delivery.dedup import Dedup
from penstock.errors import ReservedName
from penstock.log import Columns
from tests.unit.delivery.scene import RESTARTS, Scene

OPTIONS = BrokerOptions(dedup_count=3, dedup_age_s=10.0)


def publish(scene: Scene, *ids: str | None, topic: str = "t") -> list[int]:
    """Publish one event for each dedup id; their offsets."""
    columns = Columns([b"x"] * len(ids), scene.log.now_ms())
    return scene.broker.publish_once(topic, columns, list(ids), scene.now_s)


def test_second_publish_of_an_id_stores_nothing_and_tells_where_it_is() -> None:
    scene = Scene()
    first = publish(scene, "a", "b")
    scene.commit()

    again = publish(scene, "b", "a", "c")
    scene.commit()

    assert (first, again) == ([0, 1], [1, 0, 2])
    assert scene.log.topic("t").end_offset == 3


def test_duplicates_inside_a_batch_are_stored_once() -> None:
    scene = Scene()
    publish(scene, "old")

    offsets = publish(scene, "a", None, "a", "old", "b", None, "b", "a", "old")

    assert offsets == [1, 2, 1, 0, 3, 4, 3, 1, 0]
    assert scene.log.topic("t").next_offset == 5


def test_events_without_an_id_are_always_stored() -> None:
    scene = Scene()

    assert publish(scene, None, None) == [0, 1]
    assert publish(scene, None) == [2]
    assert not scene.broker.dedup.urgent


def test_ids_count_per_topic() -> None:
    scene = Scene()
    publish(scene, None, "a")

    assert publish(scene, "a", topic="other") == [0]
    assert publish(scene, "a") == [1]


def test_picked_events_keep_all_they_have() -> None:
    scene = Scene()
    publish(scene, "a")
    columns = Columns([b"1", b"2"], 7, ids=["x", "y"], priorities=[3, 4])

    scene.broker.publish_once("t", columns, ["a", "b"], scene.now_s)
    scene.commit()

    (batch,) = scene.log.read("t", 1)
    assert (batch.payloads(), batch.ids()) == ([b"2"], ["y"])
    assert batch.priorities() == [4]


def test_refused_events_leave_no_id_behind() -> None:
    scene = Scene()

    with pytest.raises(ReservedName):
        publish(scene, "a", topic="$mine")

    assert not scene.broker.dedup.urgent


# The window


@RESTARTS
def test_only_the_last_ids_are_remembered(restart: str) -> None:
    scene = Scene(OPTIONS)
    publish(scene, "a", "b", "c", "d")
    scene.commit()
    scene.restart(restart)

    assert publish(scene, "b", "c", "d") == [1, 2, 3]
    assert publish(scene, "a") == [4]


@RESTARTS
def test_id_is_forgotten_when_it_is_old(restart: str) -> None:
    scene = Scene(OPTIONS)
    publish(scene, "a")
    scene.commit()
    scene.clock.advance(10.0)
    assert publish(scene, "a") == [0]

    scene.clock.advance(0.001)
    scene.restart(restart)

    assert publish(scene, "a") == [1]


def test_old_ids_go_when_a_new_one_comes() -> None:
    scene = Scene(OPTIONS)
    publish(scene, "a")
    scene.commit()
    scene.clock.advance(11)
    publish(scene, "b")
    scene.commit()

    assert list(scene.broker.dedup._topics["t"]) == ["b"]


def test_window_of_no_ids_remembers_nothing() -> None:
    scene = Scene(BrokerOptions(dedup_count=0))
    publish(scene, "a")
    scene.commit()

    assert publish(scene, "a") == [1]


# Failures and restarts


def test_id_of_a_failed_publish_is_free_again() -> None:
    scene = Scene()
    publish(scene, "a")
    scene.fail_commit()

    assert publish(scene, "b", "a") == [0, 1]


def test_id_published_while_another_group_is_committed_goes_with_its_failure() -> None:
    scene = Scene()
    publish(scene, "a")
    commit = scene.log.begin_commit()
    assert commit is not None
    assert publish(scene, "a", "b") == [0, 1]
    scene.disk.fail(lambda what, path: OSError(28, "simulated"))
    commit.run()
    scene.disk.fail(None)

    scene.log.end_commit(commit)

    assert publish(scene, "b", "a") == [0, 1]


def test_id_published_twice_in_a_failed_group_is_free_again() -> None:
    scene = Scene(OPTIONS)
    publish(scene, "a")
    scene.clock.advance(11)
    assert publish(scene, "a") == [1]

    scene.fail_commit()

    assert publish(scene, "b", "a") == [0, 1]


def test_failed_publishes_push_no_id_out_of_the_window() -> None:
    scene = Scene(OPTIONS)
    publish(scene, "a", "b", "c")
    scene.commit()
    publish(scene, "d", "e", "f")
    scene.fail_commit()

    assert publish(scene, "a", "b", "c") == [0, 1, 2]


@RESTARTS
def test_ids_come_back_with_the_broker(restart: str) -> None:
    scene = Scene()
    publish(scene, "a")
    scene.clock.advance(1)
    publish(scene, "b", "c")
    scene.commit()
    publish(scene, "x", topic="other")
    scene.commit()

    scene.restart(restart)

    assert publish(scene, "c", "b", "a") == [2, 1, 0]
    assert publish(scene, "x", topic="other") == [0]


@RESTARTS
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("again", [False, True])
def test_ids_of_a_deleted_topic_are_void(
    restart: str, fails: bool, again: bool
) -> None:
    scene = Scene()
    publish(scene, "a")
    scene.commit()

    scene.broker.delete_topic("t")

    scene.commit()
    if again:
        scene.broker.create_topic("t")
        publish(scene, None, "b")
    if fails:
        scene.fail_commit()
    scene.commit()
    scene.restart(restart)

    stored = 2 if again and not fails else 0
    assert publish(scene, "a") == [stored]


def test_what_was_forgotten_is_forgotten_once() -> None:
    dedup = Dedup(10, 10.0)

    dedup.forget("t")

    assert not dedup.urgent
