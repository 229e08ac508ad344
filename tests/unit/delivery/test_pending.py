from __future__ import annotations

import pytest

from penstock.broker.options import BrokerOptions
from penstock.delivery.pending import Pending
from penstock.errors import LimitReached
from penstock.log import Record
from tests.unit.delivery.scene import RESTARTS, SMALL, Scene


def add(scene: Scene, payload: bytes = b"x") -> int:
    return scene.broker.pending.add("t", payload, scene.now_s)


def release(scene: Scene, id_: int) -> None:
    message = scene.broker.pending.get(id_)
    assert message is not None
    scene.broker.release(message, scene.now_s)


def stored(scene: Scene) -> list[bytes]:
    return [text for batch in scene.log.read("t", 0) for text in batch.payloads()]


def test_message_is_in_its_topic_once_it_is_released() -> None:
    scene = Scene()
    id_ = add(scene)
    scene.commit()
    assert stored(scene) == []

    release(scene, id_)
    scene.commit()

    assert stored(scene) == [b"x"]
    assert scene.broker.pending.get(id_) is None


@pytest.mark.parametrize(
    ("max_messages", "max_bytes", "setting"),
    [(2, 100, "max_pending"), (9, 3, "max_pending_bytes")],
)
def test_limit_holds_until_something_is_removed(
    max_messages: int, max_bytes: int, setting: str
) -> None:
    pending = Pending(max_messages, max_bytes)
    first = pending.add("t", b"x", 0.0)
    pending.add("t", b"yy", 0.0)

    with pytest.raises(LimitReached) as caught:
        pending.add("t", b"z", 0.0)

    assert caught.value.setting == setting
    message = pending.get(first)
    assert message is not None
    pending.remove(message)
    assert pending.add("t", b"z", 0.0) == 3
    assert len(pending) == 2


@RESTARTS
def test_pending_messages_and_ids_survive(restart: str) -> None:
    scene = Scene()
    first, second = add(scene, b"one"), add(scene, b"two")
    scene.commit()
    release(scene, first)
    scene.commit()

    scene.restart(restart)

    assert scene.broker.pending.get(first) is None
    assert add(scene) == second + 1
    release(scene, second)
    scene.commit()
    assert stored(scene) == [b"one", b"two"]


@RESTARTS
def test_id_of_a_released_message_is_not_given_out_again(restart: str) -> None:
    scene = Scene()
    last = add(scene)
    release(scene, last)
    scene.commit()

    scene.restart(restart)

    assert add(scene) == last + 1


def test_message_that_a_record_removes_again_is_gone_once() -> None:
    pending, after = Pending(9, 9), Pending(9, 9)
    message = pending.get(pending.add("t", b"x", 0.0))
    assert message is not None
    ((added, _),) = pending.collect()
    pending.remove(message)
    ((removed, _),) = pending.collect()

    for data in (added, removed, removed):
        after.replay(Record(kind=257, data=data, group=1, time_ms=0))

    assert len(after) == 0
    assert after.add("t", b"y", 0.0) == message.id + 1


# Failures


def test_message_whose_group_failed_is_not_pending() -> None:
    scene = Scene(BrokerOptions(max_pending_bytes=1))
    id_ = add(scene)
    scene.fail_commit()

    assert scene.broker.pending.get(id_) is None
    assert add(scene) == id_ + 1


@RESTARTS
def test_release_whose_group_failed_can_be_repeated(restart: str) -> None:
    scene = Scene()
    id_ = add(scene)
    scene.commit()
    release(scene, id_)
    scene.fail_commit()
    assert stored(scene) == []

    release(scene, id_)
    scene.commit()
    scene.restart(restart)

    assert stored(scene) == [b"x"]
    assert scene.broker.pending.get(id_) is None


def test_message_that_came_and_went_in_a_failed_group_was_never_there() -> None:
    scene = Scene()
    id_ = add(scene)
    release(scene, id_)

    scene.fail_commit()

    assert len(scene.broker.pending) == 0
    assert scene.log.topic("t").next_offset == 0


# Expiry


@RESTARTS
def test_message_without_pubrel_ends_in_the_dead_letters(restart: str) -> None:
    scene = Scene(BrokerOptions(pending_ttl_s=10.0))
    old = add(scene, b"old")
    scene.clock.advance(5)
    young = add(scene, b"young")

    scene.advance(5.5)
    (letter,) = scene.letters()
    scene.restart(restart)

    assert b"the PUBREL of message 1 never came" in letter
    assert scene.broker.pending.get(old) is None
    assert scene.broker.pending.get(young) is not None


def test_messages_put_back_expire_in_their_order() -> None:
    scene = Scene(BrokerOptions(pending_ttl_s=10.0))
    old = add(scene)
    scene.commit()
    scene.clock.advance(5)
    add(scene)
    scene.commit()
    release(scene, old)
    scene.fail_commit()

    scene.advance(6)

    assert scene.broker.pending.get(old) is None
    assert len(scene.broker.pending) == 1


def test_message_waits_while_its_letter_cannot_be_kept() -> None:
    scene = Scene(BrokerOptions(pending_ttl_s=10.0), SMALL)
    id_ = add(scene)
    scene.commit()

    scene.refuse_appends()
    scene.advance(11)
    assert scene.broker.pending.get(id_) is not None
    scene.disk.fail(None)
    scene.advance(1)

    assert scene.broker.pending.get(id_) is None
    assert len(scene.letters()) == 1
