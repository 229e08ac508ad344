from __future__ import annotations

from penstock.broker.timers import Timers
from penstock.delivery.subscription import Subscription
from tests.unit.delivery.scene import Scene


def two() -> tuple[Subscription, Subscription]:
    scene = Scene()
    ann, bob = scene.subscribe(), scene.subscribe(name="bob")
    return ann.subscription, bob.subscription


def test_subscription_is_due_at_its_earliest_moment_and_once() -> None:
    ann, bob = two()
    timers = Timers()
    timers.arm(ann, 9.0)
    timers.arm(bob, 7.0)
    timers.arm(ann, 5.0)
    timers.arm(ann, 6.0)

    assert timers.next_s() == 5.0
    assert timers.due(4.9) == []
    assert timers.due(5.0) == [ann]
    assert timers.due(8.0) == [bob]
    assert timers.due(99.0) == []
    assert timers.next_s() is None


def test_subscription_can_be_armed_again_when_it_was_due() -> None:
    ann, _ = two()
    timers = Timers()
    timers.arm(ann, 5.0)
    timers.due(5.0)

    timers.arm(ann, 6.0)

    assert timers.due(6.0) == [ann]


def test_subscriptions_of_one_moment_are_due_together() -> None:
    ann, bob = two()
    timers = Timers()
    timers.arm(bob, 5.0)
    timers.arm(ann, 5.0)

    assert timers.due(5.0) == [bob, ann]


def test_what_is_due_in_a_while_still_is_when_the_clock_was_set() -> None:
    ann, bob = two()
    timers = Timers()
    timers.arm(ann, 100.0)
    timers.arm(bob, 107.0)
    timers.arm(ann, 105.0)

    timers.shift(-90.0)

    assert timers.next_s() == 10.0
    assert timers.due(9.9) == []
    assert timers.due(10.0) == [ann]
    assert timers.due(17.0) == [bob]
