from __future__ import annotations

import msgspec
import pytest

from penstock.broker.options import BrokerOptions
from penstock.delivery import subscriptions as subscriptions_module
from penstock.delivery.handshake import Reply
from penstock.delivery.subscription import Subscription
from penstock.delivery.subscriptions import SubscriptionChange, Subscriptions
from penstock.errors import LimitReached
from penstock.log import Columns, Record, TopicOptions
from penstock.model.failure import Failure, refused
from penstock.model.policy import Policy
from tests.unit.delivery.scene import LOG, PRIORITY, RESTARTS, Scene

QOS_2 = Policy(qos=2)


def test_subscriptions_are_found_by_subscriber_and_topic() -> None:
    scene = Scene()
    scene.publish(0, topic="u")
    ann, bob = scene.subscribe(), scene.subscribe(name="bob")
    other = scene.subscribe(topic="u")
    subscriptions = scene.broker.subscriptions

    assert subscriptions.get("ann", "t") is ann.subscription
    assert subscriptions.get("ann", "v") is subscriptions.get("eve", "t") is None
    assert list(subscriptions.of_topic("t")) == [ann.subscription, bob.subscription]
    assert list(subscriptions.of_topic("v")) == []
    found = subscriptions.of_subscriber("ann")
    assert found == [ann.subscription, other.subscription]
    assert subscriptions.of_subscriber("eve") == []
    assert len(subscriptions) == len(list(subscriptions)) == 3


def test_limit_counts_all_of_them() -> None:
    subscriptions = Subscriptions(2)
    subscriptions.add("ann", "t", LOG, 0, temporary=False)
    bob = subscriptions.add("bob", "t", LOG, 0, temporary=True)

    with pytest.raises(LimitReached) as caught:
        subscriptions.add("eve", "t", LOG, 0, temporary=False)

    assert caught.value.setting == "max_subscriptions"
    subscriptions.remove(bob)
    subscriptions.add("eve", "t", LOG, 0, temporary=False)


def test_subscriber_keeps_its_other_topics_when_one_is_forgotten() -> None:
    scene = Scene()
    scene.publish(0, topic="u")
    scene.subscribe()
    other = scene.subscribe(topic="u")

    scene.broker.forget("ann", "t")

    assert scene.broker.subscriptions.of_subscriber("ann") == [other.subscription]
    assert scene.subscription(topic="u") is other.subscription


# What is to be written


def test_new_subscription_is_urgent_and_said_once() -> None:
    scene = Scene()
    subscriptions = scene.broker.subscriptions
    assert not subscriptions.dirty

    scene.subscribe()

    assert (subscriptions.urgent, subscriptions.dirty) == (True, True)
    ((_, sync),) = subscriptions.collect()
    assert sync
    assert not subscriptions.dirty
    assert subscriptions.collect() == []


def test_taking_can_wait_and_settling_cannot() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    scene.commit()
    subscriptions = scene.broker.subscriptions

    scene.take(consumer)
    assert (subscriptions.urgent, subscriptions.dirty) == (False, True)
    ((_, sync),) = subscriptions.collect()
    assert not sync

    consumer.subscription.settle(0)
    assert subscriptions.urgent
    ((_, sync),) = subscriptions.collect()
    assert sync


def test_settlement_is_synced_no_more_than_its_topic() -> None:
    scene = Scene()
    scene.broker.create_topic("os", TopicOptions(durability="os"))
    scene.publish(0, topic="os")
    consumer = scene.subscribe(topic="os")
    scene.commit()
    scene.take(consumer)
    consumer.subscription.settle(0)

    assert scene.broker.subscriptions.urgent
    ((_, sync),) = scene.broker.subscriptions.collect()

    assert not sync


def test_temporary_subscription_is_never_written() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(temporary=True)
    scene.take(consumer)
    consumer.subscription.settle(0)
    scene.broker.subscriptions.update(consumer.subscription)
    assert not scene.broker.subscriptions.dirty

    scene.broker.detach(consumer)

    assert not scene.broker.subscriptions.dirty
    assert len(scene.broker.subscriptions) == 0
    scene.restart("close")
    assert len(scene.broker.subscriptions) == 0


def test_snapshot_leaves_temporary_subscriptions_out() -> None:
    scene = Scene()
    scene.publish(0)
    scene.subscribe(temporary=True)
    scene.log.checkpoint()

    scene.restart("kill")

    assert len(scene.broker.subscriptions) == 0


# Restarts


def test_what_a_snapshot_has_out_of_a_run_is_settled_for_good() -> None:
    scene, wide = Scene(), Policy(order="log", window=9)
    scene.publish(*[0] * 4)
    consumer = scene.subscribe(wide)
    scene.take(consumer)
    scene.commit()  # a run
    scene.broker.detach(consumer)  # whose events stand for themselves, unsaid
    subscriptions = scene.broker.subscriptions
    snapshot = subscriptions.snapshot()
    again = scene.subscribe(wide)
    scene.take(again)
    again.subscription.settle(1)
    ((data, _),) = subscriptions.collect()

    restored = Subscriptions(9)
    restored.restore(snapshot)
    restored.replay(Record(kind=0, data=data, group=0, time_ms=0))

    (one,) = restored
    assert 1 not in one.owed
    assert len(one.owed) == 3


@RESTARTS
@pytest.mark.parametrize("checkpoint", [False, True])
@pytest.mark.parametrize("policy", [LOG, PRIORITY])
@pytest.mark.parametrize("level", [0, 5])
def test_subscription_goes_on_where_it_was(
    restart: str, checkpoint: bool, policy: Policy, level: int
) -> None:
    scene = Scene()
    scene.publish(0, level, 0, 0)
    consumer = scene.subscribe(policy)
    first = scene.take(consumer)
    consumer.subscription.settle(first[0])
    second = scene.take(consumer)
    if checkpoint:
        scene.log.checkpoint()
    scene.commit()

    scene.restart(restart)
    again = scene.subscribe(policy)

    assert scene.subscription().lag() == 3
    portions = scene.broker.take(again, scene.now_s, 9)
    assert [one.tries for one in portions] == [2]
    assert portions[0].page.batch.offset_of(portions[0].lo) == second[0]
    scene.subscription().settle(second[0])
    rest = sorted(scene.drain(again))
    assert sorted([*first, *second, *rest]) == [0, 1, 2, 3]


@RESTARTS
def test_run_that_was_broken_comes_back_in_order(restart: str) -> None:
    scene = Scene()
    scene.publish(*[0] * 9)
    consumer = scene.subscribe(Policy(window=6))
    scene.take(consumer)
    scene.commit()
    consumer.subscription.settle(2)
    consumer.subscription.refuse(4, refused("no"), scene.now_s)
    scene.commit()
    scene.restart(restart)
    again = scene.subscribe(Policy(window=6))
    assert scene.take(again) == [0, 1, 3, 4, 5, 6]
    scene.subscription().settle(1)
    scene.commit()

    scene.restart(restart)

    assert scene.drain(scene.subscribe(Policy(window=6))) == [0, 3, 4, 5, 6, 7, 8]


@RESTARTS
def test_released_and_settled_deliveries_are_remembered(restart: str) -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    consumer = scene.subscribe(Policy(qos=2, window=3))
    scene.take(consumer)
    scene.commit()
    for offset, answer in [(0, Reply.PUBREC), (1, Reply.PUBREC), (0, Reply.PUBCOMP)]:
        scene.broker.answer(consumer, offset, answer, scene.now_s)
    scene.commit()

    scene.restart(restart)
    again = scene.subscribe(Policy(qos=2, window=3))

    assert scene.take(again) == [2]
    assert [one.offset for one in scene.broker.resume(again, scene.now_s)] == [1]


@RESTARTS
def test_errors_and_tries_are_remembered(restart: str) -> None:
    scene = Scene()
    scene.publish(0)
    policy = Policy(tries=2)
    consumer = scene.subscribe(policy)
    scene.take(consumer)
    scene.broker.refuse(consumer, 0, refused("one"), scene.now_s)
    scene.commit()
    scene.restart(restart)
    consumer = scene.subscribe(policy)
    scene.take(consumer)

    scene.broker.refuse(consumer, 0, refused("two"), scene.now_s)

    (letter,) = scene.letters()
    assert b'"tries":2,"errors":["one","two"]' in letter


def last_change(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> SubscriptionChange:
    """What the next commit writes about the only subscription that changed."""
    written: list[SubscriptionChange] = []
    make = subscriptions_module._change

    def watched(one: Subscription) -> SubscriptionChange:
        written.append(make(one))
        return written[-1]

    with monkeypatch.context() as patch:
        patch.setattr(subscriptions_module, "_change", watched)
        scene.commit()
    (change,) = written
    return change


def test_only_errors_that_are_new_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    consumer = scene.subscribe(Policy(window=3))
    scene.commit()
    scene.take(consumer)
    for offset in (0, 1):
        scene.broker.refuse(consumer, offset, refused("no"), scene.now_s)
    assert list(last_change(scene, monkeypatch).errors) == [0, 1]

    scene.take(consumer)
    assert last_change(scene, monkeypatch).errors == {}
    scene.broker.refuse(consumer, 1, refused("again"), scene.now_s)
    change = last_change(scene, monkeypatch)

    assert [one.line for one in change.errors[1]] == ["no", "again"]  # type: ignore[union-attr]
    assert (list(change.errors), change.amended) == ([1], {})


@RESTARTS
@pytest.mark.parametrize("checkpoint", [False, True])
def test_errors_written_piece_by_piece_are_put_together(
    restart: str, checkpoint: bool
) -> None:
    scene = Scene()
    scene.publish(*[0] * 5)
    consumer = scene.subscribe(Policy(window=5))
    for text in ("one", "two", "three"):
        scene.take(consumer)
        for offset in range(len(text)):
            scene.broker.refuse(consumer, offset, refused(text), scene.now_s)
        scene.commit()
        if checkpoint and text == "two":
            scene.log.checkpoint()
    scene.take(consumer)
    consumer.subscription.settle(1)
    scene.commit()
    before = dict(consumer.subscription.errors)

    scene.restart(restart)

    assert scene.subscription().errors == before
    assert [len(before.get(offset, ())) for offset in range(5)] == [3, 0, 3, 1, 1]


def test_event_that_is_owed_anew_has_no_errors_of_its_former_life() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(Policy(tries=2))
    scene.take(consumer)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.commit()
    scene.drain(consumer)
    consumer.subscription.add_back(0, 0)
    scene.take(consumer)
    scene.commit()

    scene.restart()

    (failure,) = scene.subscription().errors[0]
    assert (failure.tries, failure.kind) == (1, "Lost")


def test_event_that_is_settled_owed_and_settled_in_one_group_stays_settled() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    scene.take(consumer)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.commit()
    scene.drain(consumer)
    consumer.subscription.add_back(0, 0)
    assert scene.drain(consumer) == [0]
    scene.commit()

    scene.restart()

    assert scene.subscription().drained


def test_records_of_the_version_before_are_understood() -> None:
    """Errors were texts, all of a subscription in every record, none amended."""
    policy = {"order": "log", "window": 9, "tries": 5, "exhausted": "dead-letter"}
    full = [1, "ann", "t", policy, 0, 3, True, False, {-1: 3}]
    rows = [[0, -1, 2, 0], [1, -1, 1, 0], [2, -1, 3, 0]]
    errors = {0: ["a", "b"], 1: ["c"], 2: ["d"]}
    change = [1, 3, True, False, {-1: 3}, [[0, -1, 0, 0]], [1], [], {2: ["d", "e"]}]
    one = Subscriptions(9)

    for changes in ([[[*full, rows, [], errors]], [], [], False], [[], [change], []]):
        data = msgspec.msgpack.encode(changes)
        one.replay(Record(kind=256, data=data, group=1, time_ms=0))

    (found,) = one
    assert found.policy.jitter == 0.0
    assert found.errors == {2: [Failure(0, 1, "", "d"), Failure(0, 2, "", "e")]}
    assert sorted(found.owed) == [0, 2]


@RESTARTS
@pytest.mark.parametrize("suspended", [False, True])
def test_activity_is_remembered(restart: str, suspended: bool) -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    if suspended:
        scene.broker.failure_handling.suspend(consumer.subscription)
    else:
        scene.broker.unsubscribe(consumer)
    scene.commit()

    scene.restart(restart)

    one = scene.subscription()
    assert (one.active, one.suspended) == (False, suspended)


@RESTARTS
def test_forgotten_subscription_stays_forgotten(restart: str) -> None:
    scene = Scene()
    scene.subscribe()
    scene.commit()
    scene.broker.forget("ann", "t")
    scene.commit()

    scene.restart(restart)

    assert len(scene.broker.subscriptions) == 0


@RESTARTS
def test_subscription_made_anew_in_the_group_that_forgot_it_is_there(
    restart: str,
) -> None:
    scene = Scene()
    scene.publish(0, 0)
    scene.drain(scene.subscribe())
    scene.commit()
    scene.broker.forget("ann", "t")
    scene.subscribe()
    scene.commit()

    scene.restart(restart)

    assert len(scene.broker.subscriptions) == 1
    assert scene.drain(scene.subscribe()) == [0, 1]
    scene.broker.forget("ann", "t")


def test_subscription_that_came_and_went_in_one_group_leaves_nothing() -> None:
    scene = Scene()
    scene.subscribe()
    scene.broker.forget("ann", "t")
    scene.commit()

    scene.restart("kill")

    assert len(scene.broker.subscriptions) == 0


def test_forgotten_subscription_is_not_written_by_those_who_still_know_it() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(Policy(ack_timeout_s=5.0))
    scene.take(consumer)
    scene.commit()
    scene.broker.forget("ann", "t")
    scene.commit()

    scene.advance(6)
    scene.broker.subscriptions.update(consumer.subscription)
    assert not scene.broker.subscriptions.dirty
    scene.commit()
    scene.restart("kill")

    assert len(scene.broker.subscriptions) == 0


@RESTARTS
def test_numbers_are_not_given_out_again(restart: str) -> None:
    scene = Scene()
    first = scene.subscribe().subscription.number
    scene.commit()
    scene.restart(restart)

    assert scene.subscribe(name="bob").subscription.number == first + 1


# Failed commits


@pytest.mark.parametrize("failures", [1, 2])
def test_everything_is_said_again_after_a_failed_commit(failures: int) -> None:
    scene = Scene()
    scene.publish(*[0] * 5)
    ann = scene.subscribe(Policy(window=9))
    eve = scene.subscribe(name="eve")
    scene.take(ann)
    scene.commit()
    ann.subscription.settle_all([0, 1], ann)
    bob = scene.subscribe(name="bob")
    scene.take(bob)
    bob.subscription.settle(0)
    scene.broker.forget("eve", "t")
    temporary = scene.subscribe(name="tom", temporary=True)
    for _ in range(failures):
        scene.fail_commit()
        assert scene.broker.urgent
        ann.subscription.settle(2)
    scene.commit()

    scene.restart("kill")

    names = [one.subscriber for one in scene.broker.subscriptions]
    assert names == ["ann", "bob"]
    assert scene.drain(scene.subscribe()) == [3, 4]
    assert scene.drain(scene.subscribe(name="bob")) == [1, 2, 3, 4]
    assert eve.subscription.ended
    assert not temporary.subscription.ended


def test_pubrec_of_a_failed_commit_is_not_forgotten() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(QOS_2)
    scene.take(consumer)
    scene.broker.answer(consumer, 0, Reply.PUBREC, scene.now_s)
    scene.fail_commit()
    scene.commit()
    scene.restart("kill")

    again = scene.subscribe(QOS_2)

    assert [one.offset for one in scene.broker.resume(again, scene.now_s)] == [0]
    assert scene.take(again) == []


@RESTARTS
def test_start_behind_events_that_were_taken_back_comes_back_too(restart: str) -> None:
    scene = Scene()
    scene.publish(0)
    scene.broker.publish("t", Columns([b"lost"] * 2))
    consumer = scene.subscribe(start="latest")
    assert consumer.subscription.cursor.start == 3
    scene.fail_commit()
    scene.publish(0)
    assert scene.take(consumer) == [1]
    scene.commit()

    scene.restart(restart)

    assert scene.drain(scene.subscribe()) == [1]


def test_subscription_to_a_topic_that_was_taken_back_ends() -> None:
    scene = Scene(BrokerOptions(max_subscriptions=1))
    scene.broker.create_topic("u")
    scene.subscribe(topic="u")
    scene.fail_commit()
    scene.commit()

    assert len(scene.broker.subscriptions) == 0
    scene.restart("kill")
    assert len(scene.broker.subscriptions) == 0
