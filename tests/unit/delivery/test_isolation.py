from __future__ import annotations

from heapq import heappop

import pytest

from penstock.delivery.isolation import SendAgain, is_suspect
from penstock.delivery.owed import Owed
from penstock.delivery.states import READY, SUSPECT, OwedState
from penstock.model.failure import LOST, Failure, refused
from penstock.model.policy import Policy
from tests.unit.delivery.scene import Scene

FIVE = Policy(tries=5, window=10)


def failures(*kinds: str) -> list[Failure]:
    return [Failure(0, number, kind, "") for number, kind in enumerate(kinds, 1)]


@pytest.mark.parametrize(
    ("policy", "kinds", "suspect"),
    [
        (FIVE, [], False),
        (FIVE, [LOST], False),
        (FIVE, [LOST, LOST], True),
        (FIVE, ["ValueError", LOST, LOST], True),
        (FIVE, [LOST, LOST, "ValueError"], False),
        (FIVE, [LOST, "Timeout", LOST], False),
        (Policy(tries=2), [LOST], True),
        (Policy(tries=1), [], False),
        (Policy(tries=5, exhausted="suspend"), [LOST, LOST], False),
        (Policy(), [LOST, LOST], False),
    ],
)
def test_suspect_is_what_was_lost_the_last_two_times(
    policy: Policy, kinds: list[str], suspect: bool
) -> None:
    assert is_suspect(policy, failures(*kinds)) == suspect


def put(queue: SendAgain, offset: int, state: OwedState, level: int = 0) -> None:
    one = Owed(offset, level)
    one.state = state
    queue.moved(one, OwedState.SENT)


def test_suspects_go_in_their_order_and_one_at_a_time() -> None:
    one = SendAgain()
    for offset in (7, 3, 5):
        put(one, offset, SUSPECT, level=1)

    assert heappop(one.first(in_order=False)) == (-1, 3)
    one.alone = 3
    assert one.first(in_order=False) == []
    one.alone = None
    assert heappop(one.first(in_order=False)) == (-1, 5)
    assert one.isolating()


@pytest.mark.parametrize(("in_order", "first"), [(False, [(0, 4)]), (True, [])])
def test_only_what_is_to_stay_in_order_waits_for_a_suspect_in_front_of_it(
    in_order: bool, first: list[tuple[int, int]]
) -> None:
    one = SendAgain()
    put(one, 4, READY)
    one.alone = 3

    assert one.first(in_order=in_order) == first
    one.alone = 5
    assert one.first(in_order=in_order) == [(0, 4)]


def test_line_begins_anew_with_a_suspect_that_is_out() -> None:
    one, out = SendAgain(), Owed(5, 0)
    put(one, 3, SUSPECT)
    put(one, 4, READY)
    out.state = OwedState.ALONE

    one.line_up([out])

    assert (one.alone, one.first(in_order=False)) == (5, [])
    assert one.isolating()
    one.clear()
    assert not one.isolating()


@pytest.mark.parametrize("order", ["log", "priority"])
def test_poisonous_event_takes_none_of_its_neighbours_along(order: str) -> None:
    scene = Scene()
    scene.publish(*([0] * 5 if order == "log" else [1, 2, 3, 4, 5]))
    policy = Policy(order=order, tries=4, window=10)  # type: ignore[arg-type]
    handled: set[int] = set()
    for _ in range(20):
        consumer = scene.subscribe(policy)
        while taken := scene.take(consumer):
            if 2 in taken:
                break  # which kills it, whatever else it holds
            for offset in taken:
                handled.add(offset)
                consumer.subscription.settle(offset)
        scene.broker.detach(consumer)

    assert handled == {0, 1, 3, 4}
    assert consumer.subscription.drained
    (letter,) = scene.letters()
    assert b'"offset":2' in letter
    assert letter.count(b'"Lost"') == 5  # four tries, and what it died of


def test_others_go_on_while_a_suspect_is_out() -> None:
    scene = Scene()
    scene.publish(0, 0)
    for _ in range(2):
        consumer = scene.subscribe(FIVE)
        scene.take(consumer)
        scene.broker.detach(consumer)
    scene.publish(0)
    consumer = scene.subscribe(FIVE)

    assert scene.take(consumer) == [0, 2]
    assert scene.take(consumer) == []
    consumer.subscription.settle(0)
    assert scene.take(consumer) == [1]


def test_new_rules_that_count_no_losses_let_everybody_out() -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    for _ in range(2):
        consumer = scene.subscribe(FIVE)
        scene.take(consumer)
        scene.broker.detach(consumer)
    consumer = scene.subscribe(FIVE)
    assert scene.take(consumer) == [0]

    again = scene.subscribe(Policy(window=10))

    assert scene.take(again) == [1, 2]
    scene.broker.detach(consumer)
    assert scene.take(again) == [0]


def test_events_that_stay_in_order_do_not_overtake_a_suspect() -> None:
    scene = Scene()
    scene.publish(0, 0)
    policy = Policy(tries=9, window=10, in_order=True)
    for _ in range(2):
        consumer = scene.subscribe(policy)
        scene.take(consumer)
        scene.broker.detach(consumer)
    scene.publish(0, 0)
    consumer = scene.subscribe(policy)

    taken = []
    for _ in range(3):
        taken.append(scene.take(consumer))
        assert scene.take(consumer) == []
        for offset in taken[-1]:
            consumer.subscription.settle(offset)

    assert taken == [[0], [1], [2, 3]]


def test_event_behind_a_suspect_that_is_out_waits_for_it_where_order_counts() -> None:
    scene = Scene()
    scene.publish(0, 0)
    policy = Policy(tries=9, window=10, in_order=True)
    for _ in range(2):
        consumer = scene.subscribe(policy)
        assert scene.take(consumer) == [0, 1]
        scene.broker.refuse(consumer, 1, refused("no"), scene.now_s)
        scene.broker.detach(consumer)
    consumer = scene.subscribe(policy)

    assert scene.take(consumer) == [0]
    assert scene.take(consumer) == []
    consumer.subscription.settle(0)
    assert scene.take(consumer) == [1]
