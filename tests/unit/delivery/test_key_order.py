from __future__ import annotations

from collections import defaultdict
from random import Random

import pytest

from penstock.delivery.consumer import Consumer
from penstock.errors import TakenInOrder, WrongOrder
from penstock.log import Columns
from penstock.model.failure import refused
from penstock.model.policy import Policy
from tests.unit.delivery.scene import RESTARTS, Scene

BY_KEY = Policy(order="key", window=100)
KEEPING = Policy(order="key", window=100, in_order=True)


def publish(scene: Scene, *keys: bytes | None) -> None:
    scene.broker.publish("t", Columns([b"x"] * len(keys), keys=list(keys)))
    scene.commit()


def take_all(scene: Scene, consumers: list[Consumer]) -> dict[Consumer, list[int]]:
    """What each gets; others are asked again for what one has read past."""
    found: dict[Consumer, list[int]] = {one: [] for one in consumers}
    for _ in range(2):
        for one in consumers:
            found[one] += scene.take(one)
    return found


def test_a_key_goes_to_one_consumer_and_keys_are_spread() -> None:
    scene = Scene()
    keys = [b"%d" % number for number in range(40)]
    publish(scene, *keys)
    consumers = [scene.subscribe(BY_KEY) for _ in range(3)]

    first = take_all(scene, consumers)

    assert sorted(sum(first.values(), [])) == list(range(40))
    assert all(len(offsets) > 3 for offsets in first.values())
    for consumer, offsets in first.items():
        consumer.subscription.settle_all(offsets, consumer)
    publish(scene, *keys)
    second = take_all(scene, consumers)
    for consumer in consumers:
        assert [offset - 40 for offset in second[consumer]] == first[consumer]


def test_events_of_a_key_go_one_by_one_where_the_consumer_does_not_keep_order() -> None:
    scene = Scene()
    publish(scene, b"a", b"a", b"b", b"a")
    consumer = scene.subscribe(BY_KEY)

    assert scene.take(consumer) == [0, 2]
    assert scene.take(consumer) == []
    consumer.subscription.settle(0)
    assert scene.take(consumer) == [1]
    consumer.subscription.settle(1)
    assert scene.take(consumer) == [3]


def test_consumer_that_keeps_order_gets_all_of_a_key_and_what_failed_again() -> None:
    scene = Scene()
    publish(scene, b"a", b"a", b"b", b"a")
    consumer = scene.subscribe(KEEPING)
    assert scene.take(consumer) == [0, 1, 2, 3]

    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    publish(scene, b"a", b"b")

    assert scene.take(consumer) == [0, 4, 5]


def test_event_that_failed_is_tried_again_before_the_next_of_its_key() -> None:
    scene = Scene()
    publish(scene, b"a", b"a", b"b")
    policy = Policy(order="key", window=100, backoff_s=5, tries=3)
    consumer = scene.subscribe(policy)
    assert scene.take(consumer) == [0, 2]

    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)

    assert scene.take(consumer) == []
    scene.advance(6)
    assert scene.take(consumer) == [0]
    consumer.subscription.settle(0)
    assert scene.take(consumer) == [1]


def test_key_is_handed_over_when_nothing_of_it_is_in_flight() -> None:
    scene = Scene()
    keys = [b"%d" % number for number in range(20)]
    publish(scene, *keys, *keys)
    one = scene.subscribe(KEEPING)
    assert scene.take(one) == list(range(40))

    two = scene.subscribe(KEEPING)
    publish(scene, *keys)

    kept = scene.take(one)
    assert 0 < len(kept) < 20  # the keys that stay
    assert scene.take(two) == []  # the others are in flight with the first
    moved = sorted(set(range(40, 60)) - set(kept))
    for offset in moved:
        one.subscription.settle(offset - 40)
        assert scene.take(two) == []
        one.subscription.settle(offset - 20)
        assert scene.take(two) == [offset]


def test_what_a_consumer_held_goes_to_the_others_in_order() -> None:
    scene = Scene()
    publish(scene, b"a", b"a", b"b", b"b")
    one = scene.subscribe(KEEPING)
    assert scene.take(one) == [0, 1, 2, 3]
    two = scene.subscribe(KEEPING)

    scene.broker.detach(one)

    assert scene.take(two) == [0, 1, 2, 3]


def test_events_without_a_key_go_to_any_consumer() -> None:
    scene = Scene()
    publish(scene, None, None, b"a", None)
    one, two = scene.subscribe(BY_KEY), scene.subscribe(BY_KEY)
    found = scene.take(one, 2)
    assert found == [0, 1]

    scene.broker.refuse(one, 0, refused("no"), scene.now_s)

    assert 0 in scene.take(two)


def test_a_slow_consumer_is_read_past_as_far_as_the_window_goes() -> None:
    scene = Scene()
    policy = Policy(order="key", window=4)
    publish(scene, *[b"a"] * 3, b"b", *[b"a"] * 9, b"c")
    consumer = scene.subscribe(policy)

    assert scene.take(consumer) == [0, 3]
    assert scene.take(consumer) == []
    one = consumer.subscription
    assert len(one.owed) - one.owed.in_flight == 4
    assert one.lag() == 14


@RESTARTS
def test_what_was_read_past_is_owed_after_a_restart(restart: str) -> None:
    scene = Scene()
    publish(scene, b"a", b"a", b"b", b"a")
    consumer = scene.subscribe(BY_KEY)
    scene.take(consumer)
    consumer.subscription.settle(0)
    scene.commit()

    scene.restart(restart)

    again = scene.subscribe(BY_KEY)
    assert scene.take(again) == [1, 2]
    again.subscription.settle(1)
    assert scene.take(again) == [3]
    again.subscription.settle_all([2, 3], again)
    assert again.subscription.drained


def test_rules_may_change_while_there_are_no_consumers() -> None:
    scene = Scene()
    publish(scene, b"a", b"a", b"b")
    consumer = scene.subscribe(BY_KEY)
    assert scene.take(consumer) == [0, 2]
    with pytest.raises(WrongOrder, match="by key, not as they were published"):
        scene.subscribe(Policy(window=100))
    scene.broker.detach(consumer)

    plain = scene.subscribe(Policy(window=100))

    assert scene.take(plain) == [0, 1, 2]
    scene.broker.detach(plain)
    assert scene.take(scene.subscribe(BY_KEY)) == [0, 2]


def test_several_may_keep_order_by_key_and_only_one_without() -> None:
    scene = Scene()
    strict = Policy(in_order=True)
    scene.subscribe(KEEPING, name="ann")
    scene.subscribe(KEEPING, name="ann")
    scene.subscribe(strict, name="bob")

    with pytest.raises(TakenInOrder):
        scene.subscribe(strict, name="bob")


def test_order_by_priority_stays_what_it_is() -> None:
    scene = Scene()
    scene.broker.detach(scene.subscribe(Policy(order="priority")))

    with pytest.raises(WrongOrder, match="by priority, not by key"):
        scene.subscribe(BY_KEY)


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("keeping", [False, True])
def test_each_key_is_in_order_and_with_one_consumer_whatever_happens(
    seed: int, keeping: bool
) -> None:
    random = Random(seed)
    scene = Scene()
    tries = random.choice([None, 3])
    policy = Policy(
        order="key",
        window=random.choice([3, 20]),
        in_order=keeping,
        tries=tries,
        backoff_s=random.choice([0, 2]),
    )
    keys: list[bytes | None] = []
    consumers: list[Consumer] = []
    held: dict[Consumer, list[int]] = defaultdict(list)
    settled: list[int] = []
    letters = 0
    for _ in range(250):
        match random.randrange(9):
            case 0:
                new = [random.choice([b"a", b"b", b"c", b"d", None]) for _ in range(4)]
                keys += new
                publish(scene, *new)
            case 1 if len(consumers) < 4:
                consumers.append(scene.subscribe(policy))
            case 2 if consumers and random.random() < 0.3:
                gone = consumers.pop(random.randrange(len(consumers)))
                held.pop(gone, None)
                scene.broker.detach(gone)
            case 3 | 4 | 5 if consumers:
                consumer = random.choice(consumers)
                taken = scene.take(consumer, random.randint(1, 9))
                held[consumer] += taken
                check(keys, held, consumer, taken, keeping=keeping, seed=seed)
            case 6 | 7 if consumers:
                consumer = random.choice(consumers)
                if held[consumer]:
                    offset = first_of_its_key(random, keys, held[consumer])
                    held[consumer].remove(offset)
                    if random.random() < 0.2:
                        scene.broker.refuse(
                            consumer, offset, refused("no"), scene.now_s
                        )
                    else:
                        assert consumer.subscription.settle(offset)
                        settled.append(offset)
            case 8:
                scene.advance(random.choice([0.5, 3]))
        if random.random() < 0.02:
            scene.commit()
            scene.restart()
            consumers.clear()
            held.clear()

    last = scene.subscribe(policy)
    for consumer in consumers:
        scene.broker.detach(consumer)
    for _ in range(9):
        settled += scene.drain(last)
        scene.advance(9)
    letters = len(scene.letters())
    assert last.subscription.drained, seed
    assert len(settled) == len(set(settled)), seed
    assert len(settled) + letters == len(keys), seed


def first_of_its_key(random: Random, keys: list[bytes | None], held: list[int]) -> int:
    """As a consumer handles them that keeps order."""
    offset = random.choice(held)
    return min(one for one in held if keys[one] == keys[offset] or one == offset)


def check(
    keys: list[bytes | None],
    held: dict[Consumer, list[int]],
    taker: Consumer,
    taken: list[int],
    *,
    keeping: bool,
    seed: int,
) -> None:
    for key in (b"a", b"b", b"c", b"d"):
        mine = {
            consumer: [offset for offset in offsets if keys[offset] == key]
            for consumer, offsets in held.items()
        }
        holders = [consumer for consumer, offsets in mine.items() if offsets]
        assert len(holders) <= 1, seed
        if not keeping:
            assert all(len(offsets) <= 1 for offsets in mine.values()), seed
        new = [offset for offset in taken if keys[offset] == key]
        assert new == sorted(new), seed
        for offset in new:
            owed = taker.subscription.owed
            before = [o for o in owed if o < offset and keys[o] == key]
            # Nothing of the key is overtaken, but what the same consumer has already.
            assert all(owed.holder_of(one) is taker for one in before), seed


# What has gone wrong


def test_a_letter_that_is_sent_again_keeps_its_key_together() -> None:
    scene = Scene()
    publish(scene, b"a", b"a")
    one = scene.subscribe(BY_KEY)
    subscription = one.subscription
    scene.take(one)
    subscription.settle(0)
    assert scene.take(one) == [1]
    held = subscription.hold_back(0, 0)
    assert held is not None
    subscription.settle(1)
    publish(scene, b"a")

    others = [scene.subscribe(BY_KEY) for _ in range(4)]
    taken = [scene.take(consumer) for consumer in [one, *others]]
    subscription.let_go(held)
    taken += [scene.take(consumer) for consumer in [one, *others]]

    assert sum(taken, []) == [0]


def test_suspects_without_a_key_go_one_at_a_time() -> None:
    scene = Scene()
    publish(scene, None, None, None)
    policy = Policy(order="key", window=100, tries=5)
    for _ in range(2):
        consumer = scene.subscribe(policy)
        assert scene.take(consumer) == [0, 1, 2]
        scene.broker.detach(consumer)
    consumer = scene.subscribe(policy)

    assert scene.take(consumer) == [0]
    consumer.subscription.settle(0)
    assert scene.take(consumer) == [1]


def test_what_asks_for_no_acks_goes_on_by_key() -> None:
    scene = Scene()
    publish(scene, *[b"a", b"b", None] * 3)
    consumer = scene.subscribe(Policy(order="key", window=4, qos=0))

    found = [offset for _ in range(4) for offset in scene.take(consumer)]

    assert found == list(range(9))
    assert consumer.subscription.drained


def test_consumer_that_is_away_gets_no_keys_when_the_rules_change() -> None:
    scene = Scene()
    keys: list[bytes | None] = [b"%d" % number for number in range(20)]
    away, here = scene.subscribe(BY_KEY), scene.subscribe(BY_KEY)
    away.go_away()

    here.subscription.govern(Policy(order="key", window=100, tries=5))
    publish(scene, *keys)

    assert len(scene.take(here)) == 20
    away.come_back()
    assert scene.take(away) == []


def test_consumers_that_keep_order_and_that_do_not_exclude_each_other() -> None:
    scene = Scene()
    scene.subscribe(BY_KEY)

    with pytest.raises(TakenInOrder):
        scene.subscribe(KEEPING)
