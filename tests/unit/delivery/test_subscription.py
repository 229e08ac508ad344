from __future__ import annotations

import pytest

from penstock.delivery import subscription as subscription_module
from penstock.delivery.handshake import Reply
from penstock.delivery.letters import decode_letter
from penstock.delivery.states import OwedState
from penstock.errors import WrongQos
from penstock.log import Columns, LogOptions
from penstock.model.failure import Failure, refused
from penstock.model.policy import Order, Policy
from tests.unit.delivery.scene import LOG, PRIORITY, Scene, offsets

QOS_2 = Policy(qos=2, ack_timeout_s=10.0, tries=3, release_tries=3)
ORDERS = pytest.mark.parametrize("order", ["log", "priority"])


# Taking and settling


@ORDERS
@pytest.mark.parametrize("level", [0, 5])
def test_window_is_never_exceeded(order: Order, level: int) -> None:
    scene = Scene()
    scene.publish(*[level] * 5)
    consumer = scene.subscribe(Policy(order=order, window=2))
    one = consumer.subscription

    assert scene.take(consumer) == [0, 1]
    assert (one.credit, one.lag(), one.position()) == (0, 5, 0)
    assert scene.take(consumer) == []
    one.settle(1)
    assert (one.credit, one.lag(), one.position()) == (1, 4, 0)
    assert scene.take(consumer) == [2]
    one.settle(0)
    assert one.position() == 2


def test_event_is_settled_once() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    one = consumer.subscription
    assert not one.settle(0)
    scene.take(consumer)

    assert one.settle(0)
    assert not one.settle(0)
    assert one.drained


def test_event_that_waits_to_be_sent_again_cannot_be_settled() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    scene.take(consumer)
    scene.broker.detach(consumer)

    assert not consumer.subscription.settle(0)
    assert not consumer.subscription.drained


@pytest.mark.parametrize(
    ("settled", "count"),
    [
        ([], 0),
        ([0, 1, 2], 3),
        ([1, 2], 2),
        ([2, 0], 2),
        ([0, 0, 5, 9], 1),
        ([7, 8], 0),
        ([0, 1, 2, 3, 4], 3),
    ],
)
def test_consumer_settles_many_at_once_but_only_what_it_has(
    settled: list[int], count: int
) -> None:
    scene = Scene()
    scene.publish(*[0] * 9)
    one, two = scene.subscribe(Policy(window=6)), scene.subscribe(Policy(window=6))
    scene.take(one)
    scene.take(two, limit=2)

    assert one.subscription.settle_all(settled, one) == count
    assert one.subscription.owed.in_flight == 5 - count
    assert [two.holds(offset) for offset in (3, 4)] == [True, True]


@pytest.mark.parametrize(
    ("first", "end", "settled"), [(0, 3, True), (1, 2, True), (1, 4, False)]
)
def test_run_is_settled_whole_or_not_at_all(
    first: int, end: int, settled: bool
) -> None:
    scene = Scene()
    scene.publish(*[0] * 9)
    one, two = scene.subscribe(Policy(window=6)), scene.subscribe(Policy(window=6))
    scene.take(one)
    scene.take(two)
    scene.commit()

    assert one.settle_run(first, end) is settled

    left = 5 - (end - first) if settled else 5
    assert one.subscription.owed.in_flight == left
    assert scene.broker.urgent is settled


def test_single_event_among_many_is_settled_too() -> None:
    scene = Scene()
    scene.publish(*[0] * 3)
    consumer = scene.subscribe(Policy(window=3, backoff_s=1.0))
    scene.take(consumer)
    scene.broker.refuse(consumer, 1, refused("no"), scene.now_s)
    scene.advance(1)
    scene.take(consumer)

    assert consumer.subscription.settle_all([0, 1, 2], consumer) == 3
    assert consumer.subscription.drained


def test_qos_0_is_settled_by_sending() -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    consumer = scene.subscribe(Policy(qos=0, window=2))

    assert scene.take(consumer) == [0, 1]
    assert scene.take(consumer) == [2]
    assert consumer.subscription.drained


def test_events_of_a_compacted_frame_are_owed_by_their_offsets() -> None:
    scene = Scene(log=LogOptions(tail_cache_bytes=0))
    scene.keyed(b"a", b"b", b"c")
    scene.keyed(b"b")
    scene.log.compact("t")
    consumer = scene.subscribe(Policy(window=9))

    assert scene.take(consumer) == [0, 2, 3]
    assert sorted(consumer.subscription.owed) == [0, 2, 3]


def test_large_events_are_not_all_taken_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = Scene()
    columns = Columns([bytes(1000)] * 9, priorities=[3] * 9)
    scene.broker.publish("t", columns)
    scene.commit()
    monkeypatch.setattr(subscription_module, "TAKE_BYTES", 2500)

    consumer = scene.subscribe(Policy(order="priority", window=9))

    assert scene.take(consumer) == [0, 1, 2]


def test_inactive_subscription_sends_nothing() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    consumer.subscription.active = False

    assert scene.take(consumer) == []


def test_compacted_event_of_a_level_is_passed_over() -> None:
    scene = Scene(log=LogOptions(tail_cache_bytes=0))
    columns = Columns([b"1", b"2", b"3"], keys=[b"a", b"b", b"c"], priorities=[5] * 3)
    scene.broker.publish("t", columns)
    scene.commit()
    scene.log.roll("t")
    scene.keyed(b"a")
    scene.publish(0)
    scene.log.compact("t")

    assert scene.drain(scene.subscribe(PRIORITY)) == [1, 2, 3, 4]


# Coming back


@ORDERS
@pytest.mark.parametrize("level", [0, 5])
def test_returned_events_precede_those_of_their_level(order: Order, level: int) -> None:
    scene = Scene()
    scene.publish(*[level] * 5)
    consumer = scene.subscribe(Policy(order=order, window=3))
    scene.take(consumer)
    consumer.subscription.settle(1)
    scene.broker.detach(consumer)
    again = scene.subscribe(Policy(order=order, window=3))

    portions = scene.broker.take(again, scene.now_s, 9)

    assert offsets(portions) == [0, 2, 3]
    assert [portion.tries for portion in portions] == [2, 2, 1]


def test_returned_event_waits_for_a_higher_one() -> None:
    scene = Scene()
    scene.publish(0, 3)
    consumer = scene.subscribe(PRIORITY)
    assert scene.take(consumer) == [1]
    scene.broker.detach(consumer)
    scene.publish(7)

    assert scene.drain(scene.subscribe(PRIORITY)) == [2, 1, 0]


def test_event_in_flight_is_not_overtaken() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(PRIORITY)
    scene.take(consumer)

    scene.publish(9)

    assert scene.take(consumer) == []


@pytest.mark.parametrize("policy", [LOG, PRIORITY])
def test_owed_event_that_retention_took_is_owed_no_more(policy: Policy) -> None:
    scene = Scene()
    scene.publish(5, 0)
    scene.publish(0)
    consumer = scene.subscribe(policy)
    scene.take(consumer)
    scene.broker.detach(consumer)
    scene.log.trim("t", 2)

    assert scene.drain(scene.subscribe(policy)) == [2]
    assert scene.subscription().drained
    assert scene.subscription().lag() == 0
    (letter,) = map(decode_letter, scene.letters())  # the other was never sent
    assert (letter.offset, letter.kind, letter.event) == (0, "Gone", None)


def test_owed_event_that_is_gone_leaves_no_letter_under_qos_0() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    scene.take(consumer)
    scene.broker.detach(consumer)
    scene.log.trim("t", 1)

    assert scene.take(scene.subscribe(Policy(qos=0))) == []
    assert (scene.subscription().lag(), scene.letters()) == (0, [])


def test_event_that_is_held_back_is_sent_when_it_is_let_go() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(LOG, "latest")
    one = consumer.subscription
    first, second = one.hold_back(0, 0), one.hold_back(1, 0)
    assert first is not None
    assert second is not None

    assert one.hold_back(0, 0) is None
    assert not one.add_back(1, 0)
    assert scene.take(consumer) == []
    one.let_go(first)
    one.call_off(second)
    assert scene.take(consumer) == [0]
    one.call_off(first)  # too late
    assert one.lag() == 1


def test_event_in_flight_can_be_settled_though_retention_took_it() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    scene.take(consumer)
    scene.log.trim("t", 1)

    assert consumer.subscription.settle(0)


def test_returned_event_is_settled_by_sending_under_qos_0() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    scene.take(consumer)
    scene.broker.detach(consumer)
    again = scene.subscribe(Policy(qos=0))

    assert scene.take(again) == [0]
    assert again.subscription.drained
    assert again.subscription.credit == 1


def test_returned_event_that_is_owed_no_more_is_passed_over() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe()
    scene.take(consumer)
    scene.broker.detach(consumer)
    consumer.subscription.owed.forget(0)

    assert scene.take(scene.subscribe()) == [1]


@pytest.mark.parametrize("policy", [LOG, PRIORITY])
def test_settled_event_can_be_owed_again(policy: Policy) -> None:
    scene = Scene()
    scene.publish(5, 0)
    consumer = scene.subscribe(policy)
    one = consumer.subscription
    scene.drain(consumer)

    assert one.add_back(0, 5)
    assert not one.add_back(0, 5)
    assert (one.lag(), one.position()) == (1, 0)
    scene.publish(1)

    assert scene.drain(consumer) == [0, 2]


@pytest.mark.parametrize("policy", [LOG, PRIORITY])
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_seeking_forgets_what_is_owed(policy: Policy, offset: int) -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    consumer = scene.subscribe(policy)
    one = consumer.subscription
    scene.take(consumer)

    one.seek(offset)

    assert not consumer.holds(0)
    assert (one.lag(), one.position(), one.owed.in_flight) == (3 - offset, offset, 0)
    assert scene.drain(consumer) == list(range(offset, 3))


def test_seeking_forgets_retries_and_their_errors() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(Policy(backoff_s=5.0))
    one = consumer.subscription
    scene.take(consumer)
    one.refuse(0, refused("no"), scene.now_s)
    assert one.credit == 0

    one.seek(0)

    assert (one.credit, one.errors, one.next_due_s()) == (1, {}, None)
    assert scene.take(consumer) == [0]


# Failing


def test_refused_event_is_tried_again_with_growing_pauses() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(Policy(backoff_s=2.0))
    for pause_s in (2.0, 4.0):
        assert scene.take(consumer) == [0]
        assert scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)

        scene.advance(pause_s - 0.1)
        assert scene.take(consumer) == []
        scene.advance(0.2)

    assert scene.take(consumer) == [0]
    assert consumer.subscription.errors == {
        0: [
            Failure(1_000_000, 1, "Refused", "no"),
            Failure(1_002_100, 2, "Refused", "no"),
        ]
    }
    consumer.subscription.settle(0)
    assert consumer.subscription.errors == {}


def test_event_without_an_answer_is_sent_again() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(Policy(ack_timeout_s=5.0))
    scene.take(consumer)

    scene.advance(4.9)
    assert scene.take(consumer) == []
    scene.advance(0.2)

    assert scene.take(consumer) == [0]
    failure = Failure(1_005_100, 1, "Timeout", "no answer within 5 s", "", 5.0)
    assert consumer.subscription.errors == {0: [failure]}


@pytest.mark.parametrize("offset", [0, 7])
def test_event_that_is_not_in_flight_cannot_be_refused(offset: int) -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    scene.take(consumer)
    consumer.detach(scene.now_s)

    assert consumer.subscription.refuse(offset, refused("no"), scene.now_s) is None


def test_only_the_newest_errors_are_remembered() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    for number in range(25):
        scene.take(consumer)
        consumer.subscription.refuse(0, refused(str(number)), scene.now_s)

    lines = [failure.line for failure in consumer.subscription.errors[0]]
    assert lines == [str(one) for one in range(5, 25)]


def test_last_failure_gives_the_event_up() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(Policy(tries=2))
    one = consumer.subscription
    scene.take(consumer)
    first = one.refuse(0, refused("one"), scene.now_s)
    scene.take(consumer)

    last = one.refuse(0, refused("two"), scene.now_s)

    assert first is not None
    assert last is not None
    assert (first.then, last.then) == (None, "dead-letter")
    assert (last.offset, last.tries) == (0, 2)
    assert [(one.tries, one.line) for one in last.errors] == [(1, "one"), (2, "two")]
    assert scene.take(consumer) == [1]


# QoS 2


def test_handshake_settles_an_event() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(QOS_2)
    one = consumer.subscription
    scene.take(consumer)
    answers = [
        (0, Reply.PUBCOMP, None),
        (1, Reply.PUBREC, None),
        (0, Reply.PUBREC, OwedState.RELEASED),
        (0, Reply.PUBREC, OwedState.RELEASED),
        (0, Reply.ACK, None),
        (0, Reply.PUBCOMP, OwedState.SETTLED),
        (0, Reply.PUBCOMP, None),
        (0, Reply.PUBREC, None),
    ]

    found = [one.answer(offset, say, scene.now_s) for offset, say, _ in answers]

    assert found == [stage for _, _, stage in answers]
    assert scene.take(consumer) == [1]


def test_released_event_goes_to_the_next_consumer_as_pubrel() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(QOS_2)
    scene.take(consumer)
    scene.broker.answer(consumer, 0, Reply.PUBREC, scene.now_s)
    scene.broker.detach(consumer)
    again = scene.subscribe(QOS_2)

    assert scene.take(again) == []
    assert [one.offset for one in scene.broker.resume(again, scene.now_s)] == [0]
    assert scene.broker.resume(again, scene.now_s) == []
    stage = scene.broker.answer(again, 0, Reply.PUBCOMP, scene.now_s)

    assert stage is OwedState.SETTLED
    assert scene.take(again) == [1]


def test_released_event_stays_with_its_consumer_when_another_comes() -> None:
    scene = Scene()
    scene.publish(0)
    one, two = scene.subscribe(QOS_2), scene.subscribe(QOS_2)
    scene.take(one)
    scene.broker.answer(one, 0, Reply.PUBREC, scene.now_s)

    assert scene.broker.resume(two, scene.now_s) == []
    assert scene.broker.answer(two, 0, Reply.PUBCOMP, scene.now_s) is None
    scene.broker.detach(one)
    assert [owed.offset for owed in scene.broker.resume(two, scene.now_s)] == [0]
    scene.broker.detach(two)


def test_released_event_stays_released_under_rules_with_pubcomp() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(Policy(qos=2, window=2))
    scene.take(consumer)
    scene.broker.answer(consumer, 0, Reply.PUBREC, scene.now_s)
    scene.broker.detach(consumer)

    again = scene.subscribe(Policy(qos=2, window=3))

    assert [one.offset for one in scene.broker.resume(again, scene.now_s)] == [0]
    assert scene.take(again) == [1]


def test_a_subscription_of_qos_2_is_not_made_another() -> None:
    scene = Scene()
    scene.publish(0)
    scene.broker.detach(scene.subscribe(QOS_2))

    with pytest.raises(WrongQos):
        scene.subscribe(Policy(qos=1))


def test_the_qos_changes_only_while_nobody_consumes() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(Policy(qos=1))

    with pytest.raises(WrongQos):
        scene.subscribe(Policy(qos=0))
    scene.broker.detach(consumer)

    assert scene.subscribe(Policy(qos=0)).subscription.policy.qos == 0


def test_the_tries_of_one_that_is_suspended_begin_anew_with_a_connection() -> None:
    scene = Scene()
    policy = Policy(qos=2, tries=5, exhausted="suspend")
    scene.publish(0)
    consumer = scene.subscribe(policy)
    scene.take(consumer)
    scene.broker.detach(consumer)

    again = scene.subscribe(policy)

    assert scene.take(again) == [0]
    assert again.subscription.owed[0].tries == 1


def test_what_ran_out_of_time_is_told_by_what_is_to_be_done() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(QOS_2)
    one = consumer.subscription
    scene.take(consumer)
    assert one.next_due_s() == scene.now_s + 10
    one.answer(0, Reply.PUBREC, scene.now_s)

    found = []
    for _ in range(4):
        scene.clock.advance(10)
        found.append([owed.offset for owed in one.overdue(scene.now_s).released])

    assert found == [[0], [0], [], []]
    assert one.drained
