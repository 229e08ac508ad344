"""Retained messages: the last of each topic, as durable as any event."""

from __future__ import annotations

import pytest

from penstock.broker.options import BrokerOptions
from penstock.errors import LimitReached
from penstock.log import Columns
from penstock.sessions.retained import TOPIC
from tests.unit.delivery.scene import RESTARTS, Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


def retain(scene: Scene, topic: str, payload: bytes = b"x") -> None:
    scene.broker.retained.check(topic, payload)
    scene.broker.publish(topic, Columns([payload]), keep=True)
    scene.commit()


def found(scene: Scene, filter_: str, below: int = 1 << 60) -> dict[str, bytes]:
    """What a filter finds: topics and payloads."""
    pages = scene.broker.pages
    offsets = list(scene.broker.retained.of(filter_, below))
    assert offsets == sorted(offsets)
    result: dict[str, bytes] = {}
    for offset in offsets:
        page = pages.at(TOPIC, offset)
        assert page is not None
        index = page.batch.index_of(offset)
        key = page.keys[index]
        assert key is not None
        result[key.decode()] = page.payloads[index]
    return result


def test_the_last_of_each_topic_is_retained(scene: Scene) -> None:
    for topic, payload in (("a", b"1"), ("b", b"2"), ("a", b"3")):
        retain(scene, topic, payload)

    assert found(scene, "#") == {"b": b"2", "a": b"3"}
    assert len(scene.broker.retained) == 2


def test_one_without_a_payload_takes_the_one_before_away(scene: Scene) -> None:
    retain(scene, "a")
    retain(scene, "b")

    retain(scene, "a", b"")

    assert found(scene, "#") == {"b": b"x"}
    assert found(scene, "a") == {}
    retain(scene, "a", b"again")
    assert found(scene, "a") == {"a": b"again"}


def test_nothing_is_made_to_take_away_what_is_not_there(scene: Scene) -> None:
    retain(scene, "a", b"")

    assert not scene.log.has_topic(TOPIC)
    assert scene.broker.retained.end == 0


@pytest.mark.parametrize(
    ("filter_", "topics"),
    [
        ("a/b", {"a/b"}),
        ("a/+", {"a/b", "a/c"}),
        ("a/#", {"a", "a/b", "a/c", "a/c/d"}),
        ("#", {"a", "a/b", "a/c", "a/c/d"}),
        ("+/b", {"a/b"}),
        ("x", set()),
    ],
)
def test_filters_find_what_they_match(
    scene: Scene, filter_: str, topics: set[str]
) -> None:
    for topic in ("a", "a/b", "a/c", "a/c/d"):
        retain(scene, topic)

    assert found(scene, filter_).keys() == topics


@pytest.mark.parametrize("filter_", ["#", "a"])
def test_what_was_put_behind_an_end_is_left_out(scene: Scene, filter_: str) -> None:
    retain(scene, "a", b"old")
    retain(scene, "a", b"new")

    assert found(scene, filter_, below=1) == {}
    assert found(scene, filter_, below=scene.broker.retained.end) == {"a": b"new"}


def test_what_is_not_committed_is_not_retained_yet(scene: Scene) -> None:
    scene.broker.publish("a", Columns([b"x"]), keep=True)
    assert found(scene, "#") == {}

    scene.fail_commit()

    assert found(scene, "#") == {}
    retain(scene, "a", b"y")
    assert found(scene, "#") == {"a": b"y"}


@RESTARTS
def test_they_are_there_after_a_restart(scene: Scene, restart: str) -> None:
    for topic, payload in (("a", b"1"), ("b", b"2"), ("c", b"3"), ("b", b"")):
        retain(scene, topic, payload)

    scene.restart(restart)

    assert found(scene, "#") == {"a": b"1", "c": b"3"}
    assert len(scene.broker.retained) == 2


def test_compaction_keeps_the_last_of_each(scene: Scene) -> None:
    for payload in (b"1", b"2", b"3"):
        retain(scene, "a", payload)
        retain(scene, "b", payload)
        scene.log.roll(TOPIC)
    retain(scene, "b", b"")
    scene.log.roll(TOPIC)
    retain(scene, "c", b"4")

    scene.log.compact(TOPIC)

    assert found(scene, "#") == {"a": b"3", "c": b"4"}
    scene.restart()
    assert found(scene, "#") == {"a": b"3", "c": b"4"}


def test_more_than_the_limit_are_refused_and_others_replaced() -> None:
    scene = Scene(BrokerOptions(max_retained=2))
    retain(scene, "a")
    retain(scene, "b")

    with pytest.raises(LimitReached, match="max_retained"):
        retain(scene, "c")

    retain(scene, "a", b"new")
    retain(scene, "b", b"")
    retain(scene, "c")
    assert found(scene, "#") == {"a": b"new", "c": b"x"}


def test_topics_are_found_by_a_filter_or_a_name(scene: Scene) -> None:
    for topic in ("a/1", "a/2", "b"):
        retain(scene, topic)
    kept = scene.broker.retained

    assert sorted(kept.topics("a/+")) == ["a/1", "a/2"]
    assert list(kept.topics("b")) == ["b"]
    assert list(kept.topics("c")) == []
    assert (kept.offset_of("b"), kept.offset_of("c")) == (2, None)


def test_what_is_forgotten_is_gone_when_it_is_committed(scene: Scene) -> None:
    retain(scene, "a")
    retain(scene, "b")

    scene.broker.retained.forget("a")
    assert found(scene, "#").keys() == {"a", "b"}
    scene.commit()

    assert found(scene, "#").keys() == {"b"}
    assert scene.log.topic("a").end_offset == 1
    scene.restart()
    assert found(scene, "#").keys() == {"b"}
