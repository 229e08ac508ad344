from __future__ import annotations

import pytest

from penstock.broker.finish import finish
from penstock.broker.options import BrokerOptions
from penstock.delivery.consumer import Consumer
from penstock.errors import (
    Backlogged,
    InvalidBatch,
    InvalidName,
    InvalidPayload,
    LimitReached,
    PenstockError,
    ReservedName,
)
from penstock.log import Columns, LogOptions
from penstock.model.failure import refused
from penstock.model.policy import Policy
from tests.unit.delivery.scene import RESTARTS, Scene

WINDOW = Policy(order="log", window=10)
RETRIES = Policy(order="log", window=10, tries=3)


def busy(scene: Scene, policy: Policy = WINDOW, count: int = 3) -> Consumer:
    """A consumer that has taken events."""
    scene.publish(*[0] * count)
    consumer = scene.subscribe(policy)
    scene.take(consumer)
    return consumer


def payloads(scene: Scene, topic: str = "out") -> list[bytes]:
    if not scene.log.has_topic(topic):
        return []
    batches = scene.log.read(topic, 0)
    return [payload for batch in batches for payload in batch.payloads()]


@RESTARTS
def test_settling_and_publishing_are_one_step(restart: str) -> None:
    scene = Scene()
    consumer = busy(scene)

    finish(
        scene.broker,
        consumer,
        [0, 2],
        {"out": Columns([b"a", b"b"]), "t": Columns([b"c"])},
    )
    before = payloads(scene)
    scene.commit()
    scene.restart(restart)

    assert before == []
    assert payloads(scene) == [b"a", b"b"]
    again = scene.subscribe(WINDOW)
    assert scene.take(again) == [1, 3]


def test_what_was_not_committed_is_neither_settled_nor_published() -> None:
    scene = Scene()
    consumer = busy(scene)

    finish(scene.broker, consumer, [0, 1, 2], {"out": Columns([b"a"])})
    scene.restart("kill")

    assert payloads(scene) == []
    assert scene.take(scene.subscribe(WINDOW)) == [0, 1, 2]


def test_a_failed_commit_takes_both_back() -> None:
    scene = Scene()
    consumer = busy(scene)

    finish(scene.broker, consumer, [0, 2], {"out": Columns([b"a"])})
    scene.fail_commit()

    assert payloads(scene) == []
    assert scene.take(consumer) == [0, 2]
    finish(scene.broker, consumer, [0, 1, 2], {"out": Columns([b"b"])})
    scene.commit()
    assert payloads(scene) == [b"b"]
    assert consumer.subscription.drained


def test_a_failed_commit_keeps_what_was_amended() -> None:
    scene = Scene()
    consumer = busy(scene, count=1)
    subscription = consumer.subscription
    subscription.amended[0] = b"frame"

    finish(scene.broker, consumer, [0], {"out": Columns([b"a"])})
    settled = dict(subscription.amended)
    scene.fail_commit()

    assert settled == {}
    assert subscription.amended == {0: b"frame"}


def test_a_failed_commit_harms_nobody_who_left_meanwhile() -> None:
    scene = Scene()
    consumer = busy(scene)

    finish(scene.broker, consumer, [1], {"out": Columns([b"a"])})
    scene.broker.detach(consumer)
    scene.fail_commit()

    assert scene.take(scene.subscribe(WINDOW)) == [0, 1, 2]


def test_a_subscription_that_was_moved_owes_nothing_of_before() -> None:
    scene = Scene()
    consumer = busy(scene)

    finish(scene.broker, consumer, [0], {"out": Columns([b"a"])})
    scene.broker.seek("ann", "t", 2)
    scene.fail_commit()

    assert scene.take(consumer) == [2]


@pytest.mark.parametrize(
    ("topic", "columns", "error"),
    [
        ("", Columns([b"x"]), InvalidName),
        ("$errors", Columns([b"x"]), ReservedName),
        ("out", Columns([]), InvalidBatch),
        ("out", Columns([b"x"], priorities=[999]), InvalidBatch),
        ("out", Columns([b"x" * 2000]), InvalidBatch),
        ("two", Columns([b"x"]), LimitReached),
        ("strict", Columns([b'"text"']), InvalidPayload),
    ],
    ids=["name", "reserved", "empty", "priority", "size", "topics", "schema"],
)
def test_what_is_refused_changes_nothing(
    topic: str, columns: Columns, error: type[PenstockError]
) -> None:
    most = 3 if error is LimitReached else 9
    options = BrokerOptions(max_topics=most)
    scene = Scene(options, LogOptions(max_event_bytes=1000))
    scene.broker.create_topic("strict")
    schema = {"type": "integer"}
    scene.broker.registry.register("strict", schema, type_="", at_ms=0, by="")
    scene.commit()
    consumer = busy(scene)
    topics = scene.log.topics()

    with pytest.raises(error):
        finish(scene.broker, consumer, [0], {"one": Columns([b"good"]), topic: columns})

    assert scene.log.topics() == topics
    assert consumer.holds(0)
    scene.commit()
    assert payloads(scene, "one") == []


def test_a_log_that_is_full_up_changes_nothing() -> None:
    scene = Scene(log=LogOptions(group_bytes=4096))
    consumer = busy(scene)
    scene.broker.publish("t", Columns([b"x"]))
    commit = scene.log.begin_commit()
    scene.broker.publish("t", Columns([b"x" * 4000]))

    with pytest.raises(Backlogged):
        finish(scene.broker, consumer, [0], {"out": Columns([b"x" * 6000])})

    assert consumer.holds(0)
    assert commit is not None
    commit.run()
    scene.log.end_commit(commit)
    scene.commit()
    assert not scene.log.has_topic("out")


def test_earlier_failures_are_forgotten_with_the_settlement() -> None:
    scene = Scene()
    consumer = busy(scene, RETRIES, count=1)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.take(consumer)

    finish(scene.broker, consumer, [0], {"out": Columns([b"a"])})
    scene.commit()

    assert consumer.subscription.errors == {}
    assert scene.letters() == []


def test_nothing_to_publish_and_nothing_to_settle_are_fine() -> None:
    scene = Scene()
    consumer = busy(scene)

    finish(scene.broker, consumer, [1], {})
    finish(scene.broker, consumer, [], {"out": Columns([b"a"])})
    finish(scene.broker, consumer, [2, 0], {"out": Columns([b"b"])})
    scene.commit()

    assert consumer.subscription.drained
    assert payloads(scene) == [b"a", b"b"]
