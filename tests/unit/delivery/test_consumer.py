from __future__ import annotations

from penstock.model.policy import Policy
from tests.unit.delivery.scene import Scene


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
    consumer.detach()

    consumer.detach()

    assert consumer.subscription.consumers == []
