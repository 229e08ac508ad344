from __future__ import annotations

import pytest

from penstock.delivery.consumer import Consumer
from penstock.errors import InvalidOption, TakenInOrder
from penstock.model.failure import Failure
from penstock.model.policy import Policy
from tests.unit.delivery.scene import Outlet, Scene, outlet

FAILURE = Failure(0, 0, "ValueError", "no")


def test_consumer_alone_takes_what_the_window_allows() -> None:
    scene = Scene()
    scene.publish(*[0] * 9)
    consumer = scene.subscribe(Policy(window=5))

    assert scene.take(consumer) == [0, 1, 2, 3, 4]
    assert scene.take(consumer) == []


def test_consumers_of_one_subscription_share_its_window() -> None:
    scene = Scene()
    scene.publish(*[0] * 9)
    one, two, three = (scene.subscribe(Policy(window=5)) for _ in range(3))

    assert scene.take(one) == [0, 1]
    assert scene.take(two) == [2]
    assert scene.take(three, limit=1) == [3]
    assert scene.take(three) == [4]
    assert scene.take(one) == []
    assert [offset for offset in range(9) if three.holds(offset)] == [3, 4]


def test_window_goes_to_whoever_asks_if_the_others_do_not() -> None:
    scene = Scene()
    scene.publish(*[0] * 9)
    one, _ = scene.subscribe(Policy(window=4)), scene.subscribe(Policy(window=4))

    taken = [scene.take(one) for _ in range(4)]

    assert taken == [[0, 1], [2], [3], []]


def test_what_a_consumer_held_goes_to_the_others_in_order() -> None:
    scene = Scene()
    scene.publish(*[0] * 4)
    one, two = scene.subscribe(Policy(window=4)), scene.subscribe(Policy(window=4))
    scene.take(one)
    scene.take(two)

    scene.broker.detach(one)

    assert one.subscription.consumers == [two]
    assert scene.take(two) == [0, 1, 3]
    assert two.outlet in scene.broker.awake


def test_second_detaching_does_nothing() -> None:
    scene = Scene()
    consumer = scene.subscribe()
    consumer.detach(scene.now_s)

    assert consumer.detach(scene.now_s) == []

    assert consumer.subscription.consumers == []


def limited(scene: Scene, prefetch: int, policy: Policy) -> Consumer:
    one = scene.broker.subscribe("ann", "t", policy, "earliest")
    return scene.broker.attach(one, Outlet(), prefetch)


def test_a_consumer_with_a_limit_of_its_own_gets_that_and_no_share() -> None:
    scene = Scene()
    scene.publish(*[0] * 9)
    policy = Policy(window=9)
    one, two = limited(scene, 5, policy), limited(scene, 2, policy)

    assert scene.take(one) == [0, 1, 2, 3, 4]
    assert scene.take(one) == []
    assert scene.take(two) == [5, 6]

    one.subscription.settle(3)
    assert scene.take(one) == [7]
    assert scene.take(two) == []


def test_what_waits_for_its_next_try_is_not_held_by_a_consumer() -> None:
    scene = Scene()
    scene.publish(*[0] * 4)
    consumer = limited(scene, 2, Policy(window=9, backoff_s=5.0))
    scene.take(consumer)

    scene.broker.refuse(consumer, 0, FAILURE, scene.now_s)
    scene.broker.refuse(consumer, 1, FAILURE, scene.now_s)

    assert scene.take(consumer) == [2, 3]


def test_where_others_wait_for_it_there_is_room_when_it_comes_again() -> None:
    scene = Scene()
    scene.publish(*[0] * 4)
    consumer = limited(scene, 2, Policy(window=9, backoff_s=5.0, in_order=True))
    scene.take(consumer)
    scene.broker.refuse(consumer, 0, FAILURE, scene.now_s)

    assert scene.take(consumer) == []
    scene.advance(5.0)
    assert scene.take(consumer) == [0]


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False)])
def test_events_in_order_go_to_one_consumer_at_a_time(
    first: bool, second: bool
) -> None:
    scene = Scene()
    one = scene.subscribe(Policy(in_order=first))

    with pytest.raises(TakenInOrder, match="ann to t"):
        scene.subscribe(Policy(in_order=second))
    with pytest.raises(TakenInOrder):
        scene.broker.attach(one.subscription, Outlet())

    assert one.subscription.policy == Policy(in_order=first)
    scene.broker.detach(one)
    scene.subscribe(Policy(in_order=second))


def test_a_negative_limit_is_none() -> None:
    scene = Scene()

    with pytest.raises(InvalidOption, match="prefetch"):
        limited(scene, -1, Policy())


def test_everybody_is_told_that_a_subscription_was_moved() -> None:
    scene = Scene()
    scene.publish(0, 0)
    one, two = scene.subscribe(), scene.subscribe()
    scene.broker.awake.clear()

    scene.broker.seek("ann", "t", "earliest")

    assert [outlet(one).moves, outlet(two).moves] == [1, 1]
    assert list(scene.broker.awake) == [one.outlet, two.outlet]


def test_a_consumer_is_put_where_those_are_who_may_have_something_to_take() -> None:
    scene = Scene()
    quiet, asking = scene.subscribe(name="quiet"), scene.subscribe(name="asking")
    ready: dict[Consumer, None] = {}
    asking.ready = ready

    scene.publish(0)

    assert list(ready) == [asking]
    assert quiet.ready is None
    assert scene.broker.awake.keys() >= {outlet(quiet), outlet(asking)}


def test_who_stands_behind_is_woken_last() -> None:
    scene = Scene()
    first, second = scene.subscribe(), scene.subscribe()

    first.stand_behind()

    assert first.subscription.consumers == [second, first]
