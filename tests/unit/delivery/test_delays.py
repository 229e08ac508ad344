from __future__ import annotations

import sys
from random import Random

import pytest

from penstock.delivery.consumer import Consumer
from penstock.delivery.delays import DueList, Heap
from penstock.delivery.fresh import MAX_LOOKS
from penstock.delivery.letters import decode_letter
from penstock.log import Columns, TopicOptions
from penstock.model.policy import Policy
from tests.unit.delivery.scene import RESTARTS, SMALL, Scene

WIDE = Policy(window=100)


def publish(
    scene: Scene,
    *in_s: float,
    expires_in_s: float = 0,
    priorities: list[int] | None = None,
    keys: list[bytes | None] | None = None,
) -> None:
    """Events for so many seconds later; 0 is at once."""
    now_ms = scene.log.now_ms()
    times = [now_ms + int(one * 1000) if one else 0 for one in in_s]
    columns = Columns(
        [b"x"] * len(in_s),
        now_ms,
        not_before=times if any(times) else None,
        expires=[now_ms + int(expires_in_s * 1000)] * len(in_s)
        if expires_in_s
        else None,
        priorities=priorities,
        keys=keys,
    )
    scene.broker.publish("t", columns)
    scene.commit()


# The heap


@pytest.mark.parametrize("seed", range(10))
def test_heap_gives_back_what_was_put_in_in_order(seed: int) -> None:
    random = Random(seed)
    rows = [(random.randrange(50), offset, offset % 7) for offset in range(200)]
    random.shuffle(rows)
    heap = Heap()
    for row in rows[:150]:
        heap.push(*row)
    first = [heap.pop() for _ in range(60)]
    kept = Heap(*heap.packed())
    for row in rows[150:]:
        kept.push(*row)

    rest = [kept.pop() for _ in range(len(kept))]

    assert first == sorted(rows[:150])[:60]
    assert rest == sorted(sorted(rows[:150])[60:] + rows[150:])


def test_delayed_event_takes_at_most_32_bytes() -> None:
    heap, due = Heap(), DueList()
    for offset in range(100_000):
        heap.push(2_000_000_000_000 + offset % 977, offset, 0)
        due.add(0, offset)
    due.said()

    arrays = [heap._times, heap._places, due._offsets[0]]
    assert sum(map(sys.getsizeof, arrays)) <= 32 * 100_000


def test_due_list_is_the_same_after_records() -> None:
    due, kept = DueList(), DueList()
    random = Random(1)
    for number in range(500):
        if random.random() < 0.6:
            due.add(random.randrange(3), number)
        elif (first := due.first()) is not None:
            due.pop(-first[0])
        if random.random() < 0.1:
            added = {level: one.tobytes() for level, one in due.added.items()}
            kept.take_up(added, due.taken)
            due.said()
            assert (kept.listed(), len(kept)) == (due.listed(), len(due))


# In subscriptions


def test_delayed_event_comes_when_its_time_has_come_and_holds_up_nothing() -> None:
    scene = Scene()
    consumer = scene.subscribe(WIDE)
    publish(scene, 10, 0, 5, 0)

    assert scene.take(consumer) == [1, 3]
    one = consumer.subscription
    assert (one.lag(), one.fresh.delayed, one.drained) == (4, 2, False)
    one.settle_all([1, 3], consumer)
    scene.advance(4)
    assert scene.take(consumer) == []
    scene.advance(1)
    assert scene.broker.awake
    assert scene.take(consumer) == [2]
    scene.advance(5)
    assert scene.take(consumer) == [0]
    one.settle_all([2], consumer)
    one.settle_all([0], consumer)
    assert one.drained


def test_events_come_in_the_order_of_their_times() -> None:
    scene = Scene()
    consumer = scene.subscribe(Policy())
    publish(scene, 3, 1, 2, 1)
    assert scene.take(consumer) == []
    scene.advance(5)

    assert scene.drain(consumer) == [1, 3, 2, 0]


def test_new_subscriber_finds_what_is_due_where_it_was_published() -> None:
    scene = Scene()
    publish(scene, 1, 0, 9)
    scene.advance(2)

    consumer = scene.subscribe(WIDE)

    assert scene.take(consumer) == [0, 1]
    scene.advance(8)
    assert scene.take(consumer) == [2]


def test_each_subscriber_gets_a_delayed_event_once() -> None:
    scene = Scene()
    quick, slow = scene.subscribe(WIDE), scene.subscribe(WIDE, name="bob")
    publish(scene, 0, 5, 0)
    assert scene.take(quick) == [0, 2]

    scene.advance(6)

    assert scene.drain(slow) == [0, 1, 2]
    assert scene.take(quick) == [1]
    assert scene.take(slow) == scene.take(quick) == []


def test_subscriber_that_came_after_a_delayed_event_does_not_get_it() -> None:
    scene = Scene()
    publish(scene, 5)
    consumer = scene.subscribe(WIDE, "latest")

    scene.advance(6)

    assert scene.take(consumer) == []


def test_what_is_due_goes_by_priority() -> None:
    scene = Scene()
    consumer = scene.subscribe(Policy(order="priority", window=100))
    publish(scene, 5, 5, 0, 5, priorities=[0, 9, 5, 2])
    assert scene.take(consumer) == [2]
    publish(scene, 0, 0, priorities=[3, 1])

    scene.advance(5)

    assert scene.take(consumer) == [1, 4, 3, 5, 0]


def test_delayed_event_keeps_its_place_in_its_key() -> None:
    scene = Scene()
    consumer = scene.subscribe(Policy(order="key", window=100))
    publish(scene, 0, 5, keys=[b"a", b"a"])
    assert scene.take(consumer) == [0]
    scene.advance(6)
    assert scene.take(consumer) == []

    consumer.subscription.settle(0)

    assert scene.take(consumer) == [1]


def test_many_delayed_events_are_passed_over_piece_by_piece() -> None:
    scene = Scene()
    consumer = scene.subscribe(Policy(order="priority"))
    publish(scene, *[9.0] * (MAX_LOOKS + 5), 0, priorities=[1] * (MAX_LOOKS + 5) + [0])
    scene.broker.awake.clear()

    assert scene.take(consumer) == []
    assert consumer.outlet in scene.broker.awake
    assert scene.take(consumer) == [MAX_LOOKS + 5]


def test_a_page_of_delayed_events_is_passed_over_at_once() -> None:
    scene = Scene()
    consumer = scene.subscribe(Policy())
    publish(scene, *[9.0] * (3 * MAX_LOOKS), 0)

    assert scene.take(consumer) == [3 * MAX_LOOKS]


@RESTARTS
@pytest.mark.parametrize("checkpoint", [False, True])
def test_delayed_events_survive_a_restart(restart: str, checkpoint: bool) -> None:
    scene = Scene()
    consumer = scene.subscribe(Policy(window=2))
    publish(scene, 5, 0, 7, 5, 5)
    assert scene.take(consumer) == [1]
    scene.commit()
    if checkpoint:
        scene.log.checkpoint()
    publish(scene, 6)
    scene.restart(restart)

    consumer = scene.subscribe(Policy(window=2))
    assert scene.take(consumer) == [1]
    consumer.subscription.settle(1)
    scene.advance(5.5)
    assert scene.take(consumer) == [0, 3]
    consumer.subscription.settle(0)
    scene.commit()
    if checkpoint:
        scene.log.checkpoint()
    scene.restart(restart)

    consumer = scene.subscribe(Policy(window=2))
    assert scene.take(consumer) == [3, 4]
    consumer.subscription.settle_all([3, 4], consumer)
    assert consumer.subscription.lag() == 2
    scene.advance(3)
    assert scene.take(consumer) == [5, 2]


def test_failed_commit_takes_nothing_away_that_was_due() -> None:
    scene = Scene()
    consumer = scene.subscribe(Policy())
    publish(scene, 5, 5)
    assert scene.take(consumer) == []
    scene.commit()
    scene.advance(6)
    assert scene.take(consumer) == [0]
    consumer.subscription.settle(0)

    scene.fail_commit()
    scene.commit()
    scene.restart()

    consumer = scene.subscribe(Policy())
    assert scene.drain(consumer) == [1]


def test_deleted_topic_leaves_no_delays_to_another_of_its_name() -> None:
    scene = Scene()
    publish(scene, 5)
    scene.broker.delete_topic("t")
    scene.commit()
    scene.broker.create_topic("t")
    consumer = scene.subscribe(WIDE)
    publish(scene, 0)
    assert scene.take(consumer) == [0]

    scene.advance(6)

    assert scene.take(consumer) == []


# Expiry


def test_expired_event_is_sent_to_nobody_new_and_counted() -> None:
    scene = Scene()
    early, late = scene.subscribe(WIDE), scene.subscribe(WIDE, name="bob")
    publish(scene, 0, 0, expires_in_s=5)
    publish(scene, 0)
    assert scene.take(early) == [0, 1, 2]
    scene.advance(5)

    assert scene.take(late) == [2]

    assert (early.subscription.fresh.expired, late.subscription.fresh.expired) == (0, 2)
    early.subscription.put_back([0], early)
    assert scene.take(early) == [0]  # it was sent before


def test_event_that_expires_before_its_time_is_never_sent() -> None:
    scene = Scene()
    consumer = scene.subscribe(WIDE)
    publish(scene, 9, expires_in_s=5)
    assert scene.take(consumer) == []

    scene.advance(10)

    assert scene.take(consumer) == []
    assert (consumer.subscription.fresh.expired, consumer.subscription.drained) == (
        1,
        True,
    )


def test_event_expires_while_it_waits_behind_another_of_its_key() -> None:
    scene = Scene()
    consumer = scene.subscribe(Policy(order="key", window=100))
    publish(scene, 0, 0, expires_in_s=5, keys=[b"a", b"a"])
    assert scene.take(consumer) == [0]
    scene.advance(6)
    consumer.subscription.settle(0)

    assert scene.take(consumer) == []
    assert consumer.subscription.drained
    assert consumer.subscription.fresh.expired == 1


@RESTARTS
def test_expired_events_are_counted_across_a_restart(restart: str) -> None:
    scene = Scene()
    consumer = scene.subscribe(WIDE)
    publish(scene, 0, expires_in_s=5)
    scene.advance(6)
    assert scene.take(consumer) == []
    scene.commit()

    scene.restart(restart)

    assert scene.subscription().fresh.expired == 1
    assert scene.subscription().drained


# Whatever happens


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("order", ["log", "priority", "key"])
def test_every_event_comes_once_and_not_before_its_time(seed: int, order: str) -> None:
    random = Random(seed)
    scene = Scene()
    policy = Policy(order=order, window=random.choice([1, 3, 50]))  # type: ignore[arg-type]
    times: list[float] = []
    names = ["ann", "bob"]
    consumers: dict[str, Consumer] = {n: scene.subscribe(policy, name=n) for n in names}
    settled: dict[str, list[int]] = {name: [] for name in names}
    held: dict[str, list[int]] = {name: [] for name in names}
    for _ in range(150):
        match random.randrange(8):
            case 0 | 1:
                count = random.randint(1, 4)
                delays = [float(random.choice([0, 0, 1, 3, 7])) for _ in range(count)]
                times += [scene.now_s + one if one else 0 for one in delays]
                publish(
                    scene,
                    *delays,
                    priorities=[random.randrange(3) for _ in delays],
                    keys=[random.choice([b"a", b"b", None]) for _ in delays],
                )
            case 2 | 3 | 4:
                name = random.choice(names)
                taken = scene.take(consumers[name], random.randint(1, 5))
                assert all(times[one] <= scene.now_s for one in taken), seed
                held[name] += taken
            case 5:
                name = random.choice(names)
                consumers[name].subscription.settle_all(held[name], consumers[name])
                settled[name] += held.pop(name)
                held[name] = []
            case 6:
                scene.advance(random.choice([0.3, 1, 4]))
            case 7:
                happens = random.random()
                if happens < 0.2:
                    scene.commit()
                    if happens < 0.1:
                        scene.log.checkpoint()
                    scene.restart(random.choice(["kill", "close"]))
                elif happens < 0.4:
                    for name in names:
                        scene.broker.detach(consumers[name])
                elif happens < 0.5:
                    scene.broker.subscriptions.update(scene.subscription())
                    scene.fail_commit()
                    continue
                else:
                    continue
                held = {name: [] for name in names}
                consumers = {n: scene.subscribe(policy, name=n) for n in names}

    scene.advance(10)
    for name in names:
        rest = held[name]
        consumers[name].subscription.settle_all(rest, consumers[name])
        for _ in range(3):
            rest += scene.drain(consumers[name])
        assert sorted(settled[name] + rest) == list(range(len(times))), seed
        assert consumers[name].subscription.drained, seed
        assert consumers[name].subscription.lag() == 0, seed


# Dead letters of what expired


def expiring(scene: Scene) -> Consumer:
    scene.log.set_options("t", TopicOptions(dead_letter_expired=True))
    consumer = scene.subscribe(WIDE)
    publish(scene, 0, expires_in_s=5)
    return consumer


def test_expired_event_is_a_dead_letter_if_its_topic_says_so() -> None:
    scene = Scene()
    consumer = expiring(scene)
    unanswered = scene.subscribe(Policy(qos=0), name="bob")
    scene.advance(6)

    assert scene.take(consumer) == scene.take(unanswered) == []

    (letter,) = map(decode_letter, scene.letters())
    assert (letter.subscriber, letter.offset, letter.tries) == ("ann", 0, 0)
    assert (letter.kind, letter.reason) == (
        "Expired",
        "Expired: it expired before it was sent",
    )
    assert scene.take(consumer) == []
    assert len(scene.letters()) == 1


def test_letter_of_an_expired_event_that_failed_is_written_again() -> None:
    scene = Scene()
    consumer = expiring(scene)
    scene.advance(6)
    scene.take(consumer)

    scene.fail_commit()

    assert scene.take(consumer) == []
    assert len(scene.letters()) == 1
    assert consumer.subscription.drained


def test_expired_event_that_is_sent_again_from_its_letter_is_delivered() -> None:
    scene = Scene()
    consumer = expiring(scene)
    scene.advance(6)
    scene.take(consumer)
    scene.commit()

    assert consumer.subscription.add_back(0, 0)

    assert scene.take(consumer) == [0]


# What has gone wrong


@RESTARTS
def test_event_that_was_read_past_expires_after_a_restart(restart: str) -> None:
    scene = Scene()
    policy = Policy(order="key", window=100)
    publish(scene, 0, 0, expires_in_s=5, keys=[b"a", b"a"])
    scene.take(scene.subscribe(policy))
    scene.commit()

    scene.restart(restart)
    scene.advance(6)

    consumer = scene.subscribe(policy)
    assert scene.drain(consumer) == [0]
    assert consumer.subscription.fresh.expired == 1


def test_times_that_come_earlier_and_earlier_are_not_piled_up() -> None:
    scene = Scene()
    for number in range(400):
        publish(scene, 1000.0 - number)

    assert len(scene.broker.delays._times) < 100
    scene.advance(2000)
    assert scene.broker.delays.waiting("t") == 0


def test_temporary_subscription_keeps_no_list_for_the_journal() -> None:
    scene = Scene()
    consumer = scene.subscribe(WIDE, temporary=True)
    publish(scene, 1, 1)
    scene.take(consumer)
    scene.advance(2)

    assert scene.take(consumer) == [0, 1]
    due = consumer.subscription.fresh.due
    assert (due.added, due.taken) == ({}, {})


def test_expired_event_whose_letter_is_refused_waits_and_is_counted_once() -> None:
    scene = Scene(log=SMALL)
    consumer = expiring(scene)
    scene.advance(6)
    scene.refuse_appends()

    assert scene.take(consumer) == [1]
    scene.broker.awake.clear()
    assert scene.take(consumer) == []

    assert not scene.broker.awake
    assert consumer.subscription.fresh.expired <= 1
    scene.disk.fail(None)


def test_take_has_about_so_many_bytes_whatever_is_due() -> None:
    scene = Scene()
    consumer = scene.subscribe(WIDE)
    now_ms = scene.log.now_ms()
    for _ in range(8):
        large = Columns([bytes(200_000)], now_ms, not_before=[now_ms + 1000])
        scene.broker.publish("t", large)
        scene.commit()
    scene.take(consumer)
    scene.advance(2)

    assert len(scene.take(consumer)) == 2
    assert consumer.outlet in scene.broker.awake
