from __future__ import annotations

import pytest

from penstock.delivery.handshake import Reply
from penstock.delivery.letters import decode_letter
from penstock.delivery.states import OwedState
from penstock.delivery.subscription import BROKER_ENDED, CONSUMER_LEFT
from penstock.model.failure import Failure, refused
from penstock.model.policy import Policy
from tests.unit.delivery.scene import RESTARTS, Scene

THREE = Policy(tries=3, window=3)


def lines(scene: Scene, offset: int) -> list[str]:
    return [failure.line for failure in scene.subscription().errors.get(offset, [])]


# Refused


def test_final_refusal_gives_an_event_up_whatever_tries_are_left() -> None:
    scene = Scene()
    scene.publish(0, 0)
    for policy in (Policy(), Policy(tries=9), Policy(tries=9, exhausted="suspend")):
        consumer = scene.subscribe(policy, name=str(policy))
        one = consumer.subscription
        scene.take(consumer)

        failed = one.refuse(0, refused("never"), scene.now_s, final=True)

        assert failed is not None
        assert (failed.then, failed.tries) == ("dead-letter", 1)
        assert scene.take(consumer) == [1]


def test_refused_texts_are_bounded_and_storable() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    scene.take(consumer)
    wild = Failure(0, 77, "E\ud800", "m" * 9999, "t" * 99_999)

    scene.broker.refuse(consumer, 0, wild, scene.now_s)
    scene.commit()
    scene.restart()

    (failure,) = scene.subscription().errors[0]
    assert (failure.tries, failure.kind) == (1, "E?")
    assert (len(failure.message), len(failure.traceback)) == (4096, 16_384)


# Lost with a consumer


def test_try_whose_consumer_went_away_is_a_failed_one() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(THREE)
    scene.take(consumer)
    scene.clock.advance(5)

    scene.broker.detach(consumer)

    failure = Failure(1_005_000, 1, "Lost", CONSUMER_LEFT)
    assert scene.subscription().errors == {0: [failure], 1: [failure]}
    portions = scene.broker.take(scene.subscribe(THREE), scene.now_s, 9)
    assert [one.tries for one in portions] == [2, 2]


def test_event_that_was_lost_too_often_is_a_dead_letter_at_once() -> None:
    scene = Scene()
    scene.publish(0)
    for _ in range(3):
        consumer = scene.subscribe(THREE)
        assert scene.take(consumer) == [0]
        scene.broker.detach(consumer)

    (letter,) = map(decode_letter, scene.letters())
    assert (letter.tries, letter.kind, letter.offset) == (3, "Lost", 0)
    assert [one.tries for one in letter.failures] == [1, 2, 3]
    assert scene.subscription().drained


def test_loss_is_followed_by_no_pause() -> None:
    scene = Scene()
    scene.publish(0)
    policy = Policy(tries=3, backoff_s=60.0)
    consumer = scene.subscribe(policy)
    scene.take(consumer)

    scene.broker.detach(consumer)

    assert scene.take(scene.subscribe(policy)) == [0]


@pytest.mark.parametrize("policy", [Policy(), Policy(tries=2, exhausted="suspend")])
def test_where_losses_do_not_count_an_event_is_just_returned(policy: Policy) -> None:
    scene = Scene()
    scene.publish(0)
    for _ in range(5):
        consumer = scene.subscribe(policy)
        assert scene.take(consumer) == [0]
        scene.broker.detach(consumer)

    assert scene.letters() == []
    assert lines(scene, 0) == []


def test_suspending_policy_forgets_failures_with_the_connection() -> None:
    scene = Scene()
    scene.publish(0)
    policy = Policy(tries=5, exhausted="suspend")
    consumer = scene.subscribe(policy)
    scene.take(consumer)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.take(consumer)
    scene.commit()

    scene.broker.detach(consumer)
    scene.commit()
    scene.restart()

    assert (scene.subscription().owed[0].tries, lines(scene, 0)) == (0, [])


def test_received_event_is_not_lost_with_its_consumer() -> None:
    scene = Scene()
    scene.publish(0)
    policy = Policy(tries=1, qos=2)
    consumer = scene.subscribe(policy)
    scene.take(consumer)
    scene.broker.answer(consumer, 0, Reply.PUBREC, scene.now_s)

    scene.broker.detach(consumer)

    assert scene.subscription().owed[0].state is OwedState.RELEASED
    assert scene.letters() == []


def test_forgotten_subscription_makes_no_letters() -> None:
    scene = Scene()
    scene.publish(0)
    scene.take(scene.subscribe(Policy(tries=1)))

    scene.broker.forget("ann", "t")

    assert scene.letters() == []


def test_rule_that_counts_losses_does_not_count_those_before_it() -> None:
    scene = Scene()
    scene.publish(0, 0)
    for _ in range(5):
        consumer = scene.subscribe(Policy(window=2))
        scene.take(consumer)
        scene.broker.detach(consumer)

    consumer = scene.subscribe(Policy(tries=2))
    scene.commit()
    scene.restart()

    assert scene.letters() == []
    assert [one.tries for one in scene.subscription().owed.values()] == [0, 0]


def test_rule_that_counts_losses_counts_what_is_in_flight() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(Policy(window=2))
    scene.take(consumer)
    consumer.subscription.refuse(1, refused("no"), scene.now_s)

    scene.subscribe(Policy(tries=1, window=2))
    scene.broker.detach(consumer)

    (letter,) = map(decode_letter, scene.letters())
    assert (letter.offset, letter.kind) == (0, "Lost")


def test_new_rules_do_not_shorten_a_pause() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(Policy(backoff_s=60.0))
    scene.take(consumer)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    assert consumer.subscription.owed.paused == 1

    again = scene.subscribe(Policy(tries=5, backoff_s=60.0))

    assert scene.take(again) == []
    scene.advance(61)
    assert scene.take(again) == [0]


def test_nothing_of_a_temporary_subscription_waits_to_be_written() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(Policy(tries=2), temporary=True)
    one = consumer.subscription
    scene.take(consumer)

    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.drain(consumer)
    one.add_back(0, 0)

    assert (one.owed.erred, one.owed.amended) == ({}, {})


# Lost with the broker


@RESTARTS
def test_try_that_the_broker_ended_in_the_middle_of_is_a_failed_one(
    restart: str,
) -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(Policy(tries=2, window=2))
    scene.take(consumer)
    consumer.subscription.settle(1)
    scene.commit()
    scene.clock.advance(5)

    scene.restart(restart)

    assert scene.subscription().errors == {
        0: [Failure(1_005_000, 1, "Lost", BROKER_ENDED)]
    }


@RESTARTS
def test_event_that_ends_the_broker_too_often_is_a_dead_letter_when_it_starts(
    restart: str,
) -> None:
    scene = Scene()
    scene.publish(0, 0)
    for _ in range(3):
        scene.take(scene.subscribe(Policy(tries=3)))
        scene.commit()
        scene.restart(restart)

    (letter,) = map(decode_letter, scene.letters())
    assert [one.line for one in letter.failures] == [f"Lost: {BROKER_ENDED}"] * 3
    assert letter.event is not None
    scene.restart(restart)
    assert len(scene.letters()) == 1
    assert scene.drain(scene.subscribe(Policy(tries=3))) == [1]


def test_losses_found_at_a_start_are_found_again_if_it_was_not_committed() -> None:
    scene = Scene()
    scene.publish(0)
    scene.take(scene.subscribe(Policy(tries=1)))
    scene.commit()
    scene.restart("kill")

    scene.restart("kill")

    assert len(scene.letters()) == 1


def test_failures_known_before_a_restart_are_not_counted_as_losses() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(THREE)
    scene.take(consumer)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.commit()

    scene.restart()

    assert lines(scene, 0) == ["no"]


# Put back


def test_event_that_was_never_begun_was_not_tried() -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    consumer = scene.subscribe(Policy(tries=1, window=3))
    one = consumer.subscription
    scene.take(consumer)
    scene.commit()

    one.put_back([1, 2, 7], consumer)

    assert (one.owed.in_flight, one.credit) == (1, 2)
    scene.broker.detach(consumer)
    (letter,) = map(decode_letter, scene.letters())
    assert letter.offset == 0
    scene.restart()
    consumer = scene.subscribe(Policy(tries=1, window=3))
    portions = scene.broker.take(consumer, scene.now_s, 9)
    assert [portion.tries for portion in portions] == [1, 1]


def test_only_what_is_in_flight_there_can_be_put_back() -> None:
    scene = Scene()
    scene.publish(0, 0)
    one, two = scene.subscribe(THREE), scene.subscribe(THREE)
    scene.take(one)

    two.subscription.put_back([0, 1], two)

    assert one.holds(0)
    assert one.subscription.owed[0].tries == 1


def test_event_that_was_received_is_not_put_back() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(Policy(qos=2))
    scene.take(consumer)
    scene.broker.answer(consumer, 0, Reply.PUBREC, scene.now_s)

    consumer.subscription.put_back([0], consumer)

    assert consumer.subscription.owed[0].state is OwedState.RELEASED


def test_suspect_that_is_put_back_lets_others_go() -> None:
    scene = Scene()
    scene.publish(0, 0)
    policy = Policy(tries=9, window=9)
    for _ in range(2):
        consumer = scene.subscribe(policy)
        scene.take(consumer)
        scene.broker.detach(consumer)
    consumer = scene.subscribe(policy)
    assert scene.take(consumer) == [0]

    consumer.subscription.put_back([0], consumer)

    assert scene.take(consumer) == [0]
    consumer.subscription.settle(0)
    assert scene.take(consumer) == [1]


@pytest.mark.parametrize("order", ["log", "priority"])
def test_received_suspect_lets_others_go(order: str) -> None:
    scene = Scene()
    scene.publish(1, 1)
    policy = Policy(order=order, tries=9, window=9, qos=2)  # type: ignore[arg-type]
    for _ in range(2):
        consumer = scene.subscribe(policy)
        scene.take(consumer)
        scene.broker.detach(consumer)
    consumer = scene.subscribe(policy)
    assert scene.take(consumer) == [0]

    scene.broker.answer(consumer, 0, Reply.PUBREC, scene.now_s)

    assert scene.take(consumer) == [1]


def test_what_a_killed_broker_lost_twice_is_sent_alone() -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    policy = Policy(tries=4, window=3)
    for _ in range(2):
        consumer = scene.subscribe(policy)
        assert scene.take(consumer) == [0, 1, 2]
        consumer.subscription.note_tries()
        scene.commit()
        scene.restart()

    consumer = scene.subscribe(policy)

    assert scene.take(consumer) == [0]
    consumer.subscription.settle(0)
    assert scene.take(consumer) == [1]
