from __future__ import annotations

import logging
from functools import partial

import pytest

from penstock.broker.broker import Broker
from penstock.broker.log_throttle import MAX_THINGS
from penstock.broker.options import BrokerOptions
from penstock.delivery.handshake import Reply
from penstock.delivery.letters import decode_letter
from penstock.delivery.states import OwedState
from penstock.errors import (
    Backlogged,
    InvalidName,
    LimitReached,
    ReservedName,
    TopicExists,
    UnknownSubscription,
    UnknownTopic,
    WriteFailed,
    WrongOrder,
)
from penstock.log import Columns, Log, TopicOptions
from penstock.model.failure import refused
from penstock.model.policy import Policy
from tests.unit.delivery.scene import (
    LOG,
    PRIORITY,
    RESTARTS,
    SMALL,
    Outlet,
    Scene,
    outlet,
)

QOS_2 = Policy(
    qos=2,
    ack_timeout_s=10.0,
    tries=2,
    exhausted="suspend",
    release_tries=3,
    release_interval_s=4.0,
)


# Topics and publishing


def test_publishing_makes_the_topic() -> None:
    scene = Scene()

    appended = scene.broker.publish("new", Columns([b"x"]))

    assert (appended.topic, appended.base_offset) == ("new", 0)


def test_a_topic_that_is_made_is_logged_and_many_do_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "penstock.broker")
    scene = Scene()

    for number in range(1000):
        scene.broker.create_topic(f"topic-{number}")

    said = [one.message for one in caplog.records if "created" in one.message]
    assert "Topic topic-0 is created" in said
    assert "Topic topic-1 is created" in said
    assert len(said) == MAX_THINGS + 1


@pytest.mark.parametrize(
    ("name", "error"), [("$x", ReservedName), ("", InvalidName), ("t", TopicExists)]
)
def test_topic_that_cannot_be_is_not_made(name: str, error: type[Exception]) -> None:
    scene = Scene()

    with pytest.raises(error):
        scene.broker.create_topic(name)

    assert scene.log.topics() == ["t"]


def test_clients_publish_nothing_to_topics_of_the_broker() -> None:
    scene = Scene()
    scene.broker.dead_letter(gateway="line", reason="junk", raw=b"x")

    with pytest.raises(ReservedName):
        scene.broker.publish("$dead-letters", Columns([b"x"]))


def test_limit_of_topics_holds_for_clients_and_not_for_dead_letters() -> None:
    scene = Scene(BrokerOptions(max_topics=1))

    with pytest.raises(LimitReached) as caught:
        scene.broker.publish("new", Columns([b"x"]))
    scene.broker.dead_letter(gateway="line", reason="junk", raw=b"x")

    assert caught.value.setting == "max_topics"
    assert len(scene.letters()) == 1


def test_topics_get_the_options_they_were_made_with() -> None:
    scene = Scene()
    scene.broker.create_topic("os", TopicOptions(durability="os"))

    assert scene.log.topic("os").options.durability == "os"
    assert scene.log.topic("t").options.durability == "sync"


@RESTARTS
def test_deleted_topic_takes_its_subscriptions_along(restart: str) -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    scene.take(consumer)
    scene.commit()

    scene.broker.delete_topic("t")

    scene.commit()

    assert outlet(consumer).endings == ["the topic was deleted"]
    assert consumer.outlet in scene.broker.awake
    assert len(scene.broker.subscriptions) == 0
    scene.restart(restart)
    assert scene.log.topics() == []
    assert len(scene.broker.subscriptions) == 0


def test_a_topic_is_deleted_with_events_of_its_last_group() -> None:
    """Whose priorities would go behind others of the same block."""
    scene = Scene()
    consumer = scene.subscribe(PRIORITY)
    scene.publish(3, 1, 2)
    scene.take(consumer)

    scene.broker.publish("t", Columns([b"x"], priorities=[3]))
    scene.broker.delete_topic("t")
    scene.commit()

    assert scene.log.topics() == []
    assert len(scene.broker.subscriptions) == 0


@RESTARTS
def test_topic_made_anew_under_a_deleted_name_starts_afresh(restart: str) -> None:
    scene = Scene()
    scene.publish(5, 0)
    scene.drain(scene.subscribe(PRIORITY))
    scene.commit()
    scene.broker.delete_topic("t")
    scene.commit()
    scene.publish(0, 0)
    consumer = scene.subscribe(PRIORITY)
    assert scene.take(consumer) == [0]
    scene.commit()

    scene.restart(restart)

    assert scene.drain(scene.subscribe(PRIORITY)) == [0, 1]


def test_topic_that_cannot_be_deleted_keeps_its_subscriptions() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    scene.commit()
    scene.disk.fail(lambda what, path: OSError(28, "simulated"))

    with pytest.raises(WriteFailed):
        scene.broker.delete_topic("t")
        scene.commit()

    scene.disk.fail(None)
    assert outlet(consumer).endings == []
    assert scene.take(consumer) == [0]
    with pytest.raises(UnknownTopic):
        scene.broker.delete_topic("nobody's")
        scene.commit()


def test_crash_between_a_deletion_and_its_subscriptions_end_leaves_no_orphan() -> None:
    scene = Scene()
    scene.subscribe()
    scene.commit()
    scene.log.delete_topic("t")

    scene.restart("kill")

    assert len(scene.broker.subscriptions) == 0


# Subscribing


@pytest.mark.parametrize(
    ("start", "offset"),
    [
        ("latest", 4),
        ("earliest", 1),
        (0, 1),
        (2, 2),
        (99, 4),
        ("3", 3),
        ("time:0", 1),
        ("time:1005000", 2),
        ("time:9000000", 4),
    ],
)
def test_start_means_an_offset(start: str | int, offset: int) -> None:
    scene = Scene()
    scene.publish(0, 0)
    scene.clock.advance(5)
    scene.publish(0, 0)
    scene.log.trim("t", 1)

    consumer = scene.subscribe(start=start)

    assert consumer.subscription.cursor.start == offset


def test_latest_leaves_out_what_is_not_committed_yet() -> None:
    scene = Scene()
    scene.broker.publish("t", Columns([b"x"]))
    consumer = scene.subscribe(start="latest")
    scene.commit()
    scene.publish(0)

    assert scene.take(consumer) == [1]


def test_topic_that_does_not_exist_cannot_be_subscribed() -> None:
    with pytest.raises(UnknownTopic):
        Scene().subscribe(topic="nobody's")


def test_known_subscription_is_resumed_where_it_was() -> None:
    scene = Scene()
    scene.publish(0, 0, 0)
    consumer = scene.subscribe()
    scene.take(consumer)
    consumer.subscription.settle(0)
    scene.broker.unsubscribe(consumer)
    assert not consumer.subscription.active
    scene.commit()

    again = scene.subscribe(start="latest")

    assert again.subscription is consumer.subscription
    assert again.subscription.active
    assert scene.broker.urgent
    assert scene.drain(again) == [1, 2]


def test_rules_of_a_known_subscription_change_but_for_its_order() -> None:
    scene = Scene()
    one = scene.subscribe().subscription
    scene.commit()

    scene.subscribe()
    assert not scene.broker.dirty
    scene.subscribe(Policy(window=7))
    with pytest.raises(WrongOrder):
        scene.subscribe(PRIORITY)

    assert one.credit == 7
    scene.commit()
    scene.restart("kill")
    assert scene.subscription().policy == Policy(window=7)


def test_subscription_ends_with_the_last_that_leaves_it() -> None:
    scene = Scene()
    one, two = scene.subscribe(), scene.subscribe()

    scene.broker.unsubscribe(one)
    assert one.subscription.active
    scene.broker.unsubscribe(two)

    assert not two.subscription.active


def test_subscription_without_consumer_can_be_ended() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe()
    scene.broker.deactivate("ann", "t")
    assert consumer.subscription.active
    scene.broker.failure_handling.suspend(consumer.subscription)
    scene.commit()

    scene.broker.deactivate("ann", "t")
    assert not consumer.subscription.suspended
    scene.commit()
    scene.broker.deactivate("ann", "t")
    scene.broker.deactivate("bob", "t")

    assert not scene.broker.dirty


def test_temporary_subscriber_ends_with_its_connection() -> None:
    scene = Scene()
    scene.publish(0)
    for leave in (scene.broker.detach, scene.broker.unsubscribe):
        consumer = scene.subscribe(temporary=True)
        assert scene.take(consumer) == [0]

        leave(consumer)

        assert len(scene.broker.subscriptions) == 0
        assert consumer.subscription.ended


def test_forgotten_subscription_begins_anew() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe()
    scene.drain(consumer)

    scene.broker.forget("ann", "t")

    assert outlet(consumer).endings == ["the subscription was forgotten"]
    with pytest.raises(UnknownSubscription):
        scene.broker.forget("ann", "t")
    assert scene.drain(scene.subscribe()) == [0, 1]


@RESTARTS
@pytest.mark.parametrize("policy", [LOG, PRIORITY])
@pytest.mark.parametrize("level", [0, 5])
def test_subscription_can_be_moved(restart: str, policy: Policy, level: int) -> None:
    scene = Scene()
    scene.publish(0, level, 0)
    consumer = scene.subscribe(policy)
    scene.drain(consumer)
    scene.broker.awake.clear()

    assert scene.broker.seek("ann", "t", 1) == 1
    assert consumer.outlet in scene.broker.awake
    scene.commit()
    scene.restart(restart)

    assert scene.subscription().lag() == 2
    assert scene.drain(scene.subscribe(policy)) == [1, 2]


# Waking


def test_commit_wakes_whoever_waits_and_whoever_has_room() -> None:
    scene = Scene()
    free, full = scene.subscribe(), scene.subscribe(name="bob")
    scene.publish(0)
    scene.take(full)
    somebody = object()
    scene.broker.awake.clear()
    scene.broker.waiting[somebody] = None

    scene.publish(0)

    assert list(scene.broker.awake) == [somebody, free.outlet]
    assert scene.broker.waiting == {}


def test_returned_events_wake_the_other_consumers() -> None:
    scene = Scene()
    scene.publish(0)
    one, two = scene.subscribe(), scene.subscribe()
    scene.take(one)
    scene.broker.awake.clear()

    scene.broker.detach(one)

    assert list(scene.broker.awake) == [two.outlet]


def test_inactive_subscription_wakes_nobody() -> None:
    scene = Scene()
    consumer = scene.subscribe()
    consumer.subscription.active = False
    scene.broker.awake.clear()

    scene.publish(0)

    assert scene.broker.awake == {}


# Promises


def test_promise_waits_for_the_group_that_holds_it() -> None:
    scene = Scene()
    broker = scene.broker
    assert (broker.urgent, broker.promised) == (False, broker.group - 1)
    assert scene.log.outcome(broker.promised) == "synced"

    broker.publish("t", Columns([b"x"]))
    promised = broker.promised

    assert promised == broker.group
    assert scene.log.outcome(promised) == "pending"
    scene.commit()
    assert scene.log.outcome(promised) == "synced"


def test_promise_waits_for_the_group_that_is_under_way() -> None:
    scene = Scene()
    broker = scene.broker
    broker.publish("t", Columns([b"x"]))
    commit = scene.log.begin_commit()
    assert commit is not None

    assert not broker.urgent
    assert broker.promised == commit.group.number
    assert scene.log.outcome(broker.promised) == "pending"
    commit.run()
    scene.log.end_commit(commit)


@pytest.mark.parametrize("what", ["publish", "pending", "letters", "subscribe"])
def test_whatever_was_promised_is_urgent(what: str) -> None:
    scene = Scene()
    broker = scene.broker
    match what:
        case "publish":
            broker.publish("t", Columns([b"x"]))
        case "pending":
            broker.pending.add("t", b"x", 0.0)
        case "letters":
            broker.letters.close([0], "dropped")
        case "subscribe":
            scene.subscribe()

    assert broker.urgent
    assert broker.dirty
    scene.commit()
    assert not broker.dirty


def test_broker_closes_its_log() -> None:
    scene = Scene()
    open_log = partial(Log.open, "/other", files=scene.disk, clock=scene.clock)

    with Broker(open_log) as broker:
        broker.publish("t", Columns([b"x"]))

    with Broker(open_log) as broker:
        assert broker.log.topic("t").end_offset == 1


# Handshakes


def test_answers_count_only_from_the_consumer_that_has_the_event() -> None:
    scene = Scene()
    scene.publish(0, 0)
    one, two = scene.subscribe(QOS_2), scene.subscribe(QOS_2)
    scene.take(one)
    answer = partial(scene.broker.answer, now_s=scene.now_s)

    assert answer(two, 0, Reply.PUBREC) is None
    assert answer(one, 1, Reply.PUBREC) is None
    assert answer(one, 0, Reply.PUBREC) is OwedState.RELEASED
    assert answer(two, 0, Reply.PUBCOMP) is None
    assert answer(one, 0, Reply.PUBCOMP) is OwedState.SETTLED


def test_pubrel_is_sent_again_until_the_event_counts_as_received() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(QOS_2)
    scene.take(consumer)
    scene.broker.answer(consumer, 0, Reply.PUBREC, scene.now_s)
    sent = []
    for _ in range(4):
        scene.advance(4)
        sent.append(list(outlet(consumer).pubrels))

    assert sent == [[0], [0, 0], [0, 0], [0, 0]]
    assert scene.take(consumer) == [1]


def test_pubrel_of_a_new_consumer_is_repeated_too() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(QOS_2)
    scene.take(consumer)
    scene.broker.answer(consumer, 0, Reply.PUBREC, scene.now_s)
    scene.broker.detach(consumer)
    scene.advance(99)
    again = scene.subscribe(QOS_2)
    scene.broker.resume(again, scene.now_s)

    scene.advance(4)

    assert outlet(again).pubrels == [0]
    assert outlet(consumer).pubrels == []


def test_pubrel_without_anybody_to_get_it_is_not_sent() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(QOS_2)
    one = consumer.subscription
    scene.take(consumer)
    scene.broker.answer(consumer, 0, Reply.PUBREC, scene.now_s)
    released = one.owed.get(0)
    assert released is not None
    released.holder = None

    scene.advance(4)

    assert outlet(consumer).pubrels == []


# Failures of consumers


@RESTARTS
def test_consumer_that_does_not_answer_is_suspended(restart: str) -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(QOS_2)
    assert scene.take(consumer) == [0]
    scene.advance(10)
    assert scene.take(consumer) == [0]

    scene.advance(10)

    one = scene.subscription()
    assert outlet(consumer).endings == ["suspended: no answer"]
    assert (one.active, one.suspended, one.consumers) == (False, True, [])
    scene.commit()
    scene.restart(restart)
    again = scene.subscribe(QOS_2)
    portions = scene.broker.take(again, scene.now_s, 9)
    assert [(one.lo, one.tries) for one in portions] == [(0, 1)]


def test_event_that_failed_too_often_ends_in_the_dead_letters() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(Policy(tries=2))
    for error in ("one", "two"):
        scene.take(consumer)
        assert scene.broker.refuse(consumer, 0, refused(error), scene.now_s)

    (letter,) = map(decode_letter, scene.letters())
    assert (letter.topic, letter.offset, letter.subscriber) == ("t", 0, "ann")
    assert (letter.tries, letter.errors, letter.reason) == (2, ["one", "two"], "two")
    assert scene.take(consumer) == [1]


def test_event_that_is_not_there_cannot_be_refused() -> None:
    scene = Scene()
    scene.publish(0)
    consumer = scene.subscribe(QOS_2)
    no = refused("no")
    refuse = partial(scene.broker.refuse, consumer, failure=no, now_s=scene.now_s)

    assert not refuse(0)
    scene.take(consumer)
    scene.broker.answer(consumer, 0, Reply.PUBREC, scene.now_s)
    assert not refuse(0)


@pytest.mark.parametrize("policy", [LOG, PRIORITY])
def test_event_is_tried_again_if_its_letter_cannot_be_kept(policy: Policy) -> None:
    scene = Scene(log=SMALL)
    scene.publish(5, 0)
    consumer = scene.subscribe(Policy(order=policy.order, tries=1))
    scene.take(consumer)
    scene.refuse_appends()

    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)

    assert scene.take(consumer) == [0]
    scene.disk.fail(None)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    assert len(scene.letters()) == 1
    assert scene.take(consumer) == [1]


@RESTARTS
def test_event_is_tried_again_if_the_commit_of_its_letter_fails(restart: str) -> None:
    scene = Scene()
    scene.publish(0, 0)
    policy = Policy(tries=1)
    consumer = scene.subscribe(policy)
    scene.take(consumer)
    scene.commit()
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.broker.awake.clear()

    scene.fail_commit()

    assert scene.letters() == []
    assert consumer.outlet in scene.broker.awake
    scene.restart(restart)
    consumer = scene.subscribe(policy)
    assert scene.take(consumer) == [0]
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    assert len(scene.letters()) == 1
    scene.broker.publish("t", Columns([b"x"]))
    scene.fail_commit()
    assert scene.take(consumer) == [1]


def test_event_is_not_owed_again_by_a_subscription_that_was_moved() -> None:
    scene = Scene()
    scene.publish(0, 0)
    consumer = scene.subscribe(Policy(tries=1))
    scene.take(consumer)
    scene.broker.refuse(consumer, 0, refused("no"), scene.now_s)
    scene.broker.seek("ann", "t", 1)

    scene.fail_commit()

    assert scene.drain(consumer) == [1]


def test_raw_letter_that_the_log_refuses_is_the_callers() -> None:
    scene = Scene(log=SMALL)
    scene.refuse_appends()

    with pytest.raises((WriteFailed, Backlogged)):
        scene.broker.dead_letter(gateway="line", reason="junk", raw=b"x")


def test_outlet_that_was_attached_is_awake() -> None:
    scene = Scene()
    somebody = Outlet()
    one = scene.broker.subscribe("ann", "t", LOG)

    scene.broker.attach(one, somebody)

    assert somebody in scene.broker.awake
