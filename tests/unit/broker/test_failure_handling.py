from __future__ import annotations

import logging

import pytest

from penstock.delivery.amend import EventCopy, amended_frame
from penstock.delivery.consumer import Consumer
from penstock.delivery.letters import decode_letter
from penstock.delivery.states import OwedState
from penstock.delivery.subscription import MAX_ERRORS_BYTES
from penstock.model.failure import Failure, refused
from penstock.model.policy import Policy
from tests.unit.delivery.scene import SMALL, Outlet, Scene, offsets, outlet


def test_consumer_that_takes_the_last_try_along_leaves_a_letter() -> None:
    scene = Scene()
    scene.publish(0, 0)
    one = scene.subscribe(Policy(tries=1))
    two = scene.subscribe(Policy(tries=1))
    scene.take(one)
    scene.broker.awake.clear()

    scene.broker.detach(one)

    assert len(scene.letters()) == 1
    assert two.outlet in scene.broker.awake
    assert scene.take(two) == [1]


def test_amended_event_whose_letter_cannot_be_kept_stays_amended() -> None:
    scene = Scene(log=SMALL)
    scene.publish(0)
    consumer = scene.subscribe(Policy(tries=1), "latest")
    copy = EventCopy(id="abc", timestamp_ms=0)
    consumer.subscription.add_back(0, 0, amended_frame(copy, "t", 0, b"better"))
    scene.take(consumer)
    scene.refuse_appends()
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)

    (portion,) = scene.broker.take(consumer, scene.now_s, 9)

    assert portion.page.payloads == [b"better"]
    scene.disk.fail(None)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.fail_commit()
    (portion,) = scene.broker.take(consumer, scene.now_s, 9)
    assert portion.page.payloads == [b"better"]


def test_event_that_is_gone_before_its_next_try_leaves_a_letter() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(Policy(tries=3, backoff_s=1.0))
    scene.take(consumer)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.commit()
    scene.log.trim("t", 1)

    scene.advance(2)
    assert scene.take(consumer) == []

    (letter,) = map(decode_letter, scene.letters())
    kinds = [(one.tries, one.kind) for one in letter.failures]
    assert kinds == [(1, "Refused"), (2, "Gone")]
    assert (letter.offset, letter.tries, letter.event) == (0, 2, None)
    assert scene.take(consumer) == []
    assert len(scene.letters()) == 1
    assert scene.subscription().drained


def test_whoever_keeps_events_behind_one_that_is_gone_begins_anew() -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    policy = Policy(tries=3, backoff_s=1.0, in_order=True, window=9)
    one = scene.broker.subscribe("ann", "t", policy, "earliest")
    moved: list[Consumer] = []

    class Remote(Outlet):
        def moved(self, consumer: Consumer) -> None:
            moved.append(consumer)

    consumer = scene.broker.attach(one, Remote(), 9)
    assert scene.take(consumer) == [0, 1, 2]
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.commit()
    scene.log.trim("t", 1)
    scene.advance(2)
    assert scene.take(consumer) == []

    scene.advance(1)
    scene.advance(1)

    assert moved == [consumer]
    portions = scene.broker.take(consumer, scene.now_s, 9)
    assert offsets(portions) == [1, 2]
    assert {portion.tries for portion in portions} == {1}
    assert len(scene.letters()) == 1


def test_event_that_is_gone_waits_until_its_letter_can_be_kept() -> None:
    scene = Scene(log=SMALL)
    scene.publish(0)
    consumer = scene.subscribe(Policy(tries=3))
    scene.take(consumer)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.commit()
    scene.log.trim("t", 1)
    scene.refuse_appends()

    assert scene.take(consumer) == [1]
    consumer.subscription.settle(1)
    assert scene.take(consumer) == []
    assert scene.subscription().owed.paused == 1
    scene.disk.fail(None)
    scene.advance(2)
    assert scene.take(consumer) == []
    scene.fail_commit()
    assert scene.take(consumer) == []
    scene.commit()

    (letter,) = map(decode_letter, scene.letters())
    kinds = [(one.tries, one.kind) for one in letter.failures]
    assert kinds == [(1, "Refused"), (2, "Gone")]
    assert scene.subscription().drained


def test_suspension_dismisses_everybody_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    scene = Scene()
    scene.publish(0)
    policy = Policy(tries=1, exhausted="suspend", ack_timeout_s=5.0)
    consumer = scene.subscribe(policy)
    scene.take(consumer)

    scene.advance(6)

    assert (scene.subscription().suspended, scene.letters()) == (True, [])
    assert outlet(consumer).endings == ["suspended: no answer"]
    actions = [vars(record).get("action") for record in caplog.records]
    assert "subscription_suspended" in actions


def test_subscription_that_ended_meanwhile_has_lost_nothing() -> None:
    scene = Scene()
    scene.publish(0)
    scene.subscribe(Policy(tries=1))
    one = scene.subscription()
    one.owe(0, -1, 1, OwedState.READY)
    one.ended = True

    scene.broker.failure_handling.recover()

    assert scene.letters() == []


def test_errors_of_one_event_take_no_more_than_a_measure_together() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(Policy(tries=1000))
    for number in range(30):
        assert scene.take(consumer) == [0]
        long = Failure(0, 0, "K", f"{number}" * 3000, "t" * 99_999)
        scene.broker.refuse(consumer, 0, long, scene.now_s, final=number == 29)

    (data,) = scene.letters()

    letter = decode_letter(data)
    assert [one.tries for one in letter.failures] == [28, 29, 30]  # the newest
    assert sum(one.size for one in letter.failures) <= MAX_ERRORS_BYTES
    assert letter.tries == 30  # so many there were
    assert len(data) < 2 * MAX_ERRORS_BYTES
