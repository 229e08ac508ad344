"""Quotas at the broker: who made what, what is refused, what is charged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.access.account import LEAST_READ_BYTES, LOOK_S, Account, Bucket
from penstock.access.grants import Grants
from penstock.access.quota import NAMES, NONE, Quota
from penstock.broker import epochs
from penstock.broker.finish import finish
from penstock.broker.options import BrokerOptions
from penstock.broker.topic_metadata import TopicMetadata
from penstock.broker.topic_registry import TopicRegistry, _decode_metadata
from penstock.errors import InvalidOption, QuotaReached
from penstock.log import Columns
from penstock.model.failure import refused
from penstock.model.policy import Policy
from tests.unit.delivery.scene import LOG, RESTARTS, Outlet, Scene


def account(scene: Scene, user: str = "anna", **limits: int) -> Account:
    found = scene.broker.accounts.of(Grants(user=user, quota=Quota(**limits)))
    assert found is not None
    return found


@contextmanager
def acting(scene: Scene, user: str = "anna", **limits: int) -> Iterator[Account]:
    one = account(scene, user, **limits)
    with scene.broker.accounts.acting(one):
        yield one


def publish(scene: Scene, topic: str, size: int = 1, count: int = 1) -> None:
    scene.broker.publish(topic, Columns([b"x" * size] * count))
    scene.commit()


# The value


def test_every_quota_has_a_field_and_a_name() -> None:
    assert tuple(one.name for one in fields(Quota)) == NAMES
    assert NONE.limits == {}


def test_defaults_hold_where_nothing_is_said() -> None:
    mine, defaults = Quota(topics=0, connections=3), Quota(topics=9, stored_bytes=5)

    assert mine.over(defaults) == Quota(topics=0, connections=3, stored_bytes=5)


@pytest.mark.parametrize("name", ["connections", "events_per_s", "bytes_per_s"])
def test_what_would_let_nobody_do_anything_is_no_quota(name: str) -> None:
    with pytest.raises(InvalidOption, match="at least 1"):
        Quota(**{name: 0})


def test_an_account_is_one_for_all_who_log_in_as_a_user() -> None:
    scene = Scene()
    accounts = scene.broker.accounts
    accounts.defaults = Quota(topics=7)

    assert accounts.of(None) is None
    assert accounts.of(Grants()) is None
    assert account(scene) is account(scene, connections=2)
    assert account(scene).quota == Quota(topics=7)
    assert account(scene, topics=1).quota == Quota(topics=1)


# Connections


def test_connections_are_counted_and_refused() -> None:
    scene = Scene()
    anna = account(scene, connections=1)

    anna.enter()
    with pytest.raises(QuotaReached, match="connections is 1"):
        anna.enter()
    anna.leave()
    anna.enter()

    assert anna.connections == 1
    assert scene.broker.accounts.refusals == {"connections": 1}


# Topics


def test_topics_are_counted_by_who_made_them() -> None:
    scene = Scene()

    with acting(scene, topics=2) as anna:
        publish(scene, "a")
        publish(scene, "a")
        scene.broker.create_topic("b")
        publish(scene, "t")  # somebody else's
        for make in (scene.broker.create_topic, lambda name: publish(scene, name)):
            with pytest.raises(QuotaReached, match="topics is 2"):
                make("c")

    assert not scene.log.has_topic("c")
    assert anna.topics == 2
    scene.broker.create_topic("c")
    assert scene.broker.registry["c"].made_by == ""


def test_a_topic_that_is_gone_does_not_count() -> None:
    scene = Scene()

    with acting(scene, topics=1) as anna:
        publish(scene, "a")
        scene.broker.delete_topic("a")
        scene.commit()
        publish(scene, "b")

    assert anna.topics == 1
    assert scene.broker.registry.made_by("anna") == {"b"}


def test_a_topic_whose_group_failed_does_not_count() -> None:
    scene = Scene()

    with acting(scene, topics=1) as anna:
        scene.broker.publish("a", Columns([b"x"]))
        scene.fail_commit()
        assert anna.topics == 0
        publish(scene, "b")

    assert scene.broker.registry.made_by("anna") == {"b"}


@RESTARTS
@pytest.mark.parametrize("checkpoint", [False, True])
def test_who_made_a_topic_survives(restart: str, checkpoint: bool) -> None:
    scene = Scene()
    with acting(scene):
        publish(scene, "a")
        publish(scene, "b")
    if checkpoint:
        scene.log.checkpoint()
    with acting(scene, "bert"):
        publish(scene, "c")

    scene.restart(restart)

    registry = scene.broker.registry
    assert registry.made_by("anna") == {"a", "b"}
    assert registry.made_by("bert") == {"c"}
    assert scene.broker.accounts.users() == {"anna", "bert"}


def test_a_card_of_before_has_no_maker() -> None:
    old = b"\x81\xa1t\x95\xa4full\x90\xc0\x90\x03"

    assert _decode_metadata(old) == {"t": TopicMetadata(mode="full", last_comment=3)}
    registry = TopicRegistry(BrokerOptions())
    registry.restore(old)
    assert not registry.makers()


def test_what_a_handler_publishes_is_refused_as_a_whole() -> None:
    scene = Scene()
    subscription = scene.broker.subscribe("s", "t", LOG)
    publish(scene, "t")
    consumer = scene.broker.attach(subscription, Outlet())
    scene.broker.take(consumer, scene.clock.now_s(), 1)
    events = {"a": Columns([b"x"]), "b": Columns([b"x"])}

    with acting(scene, topics=1), pytest.raises(QuotaReached):
        finish(scene.broker, consumer, [0], events)
    assert not scene.log.has_topic("a")
    assert consumer.holds(0)
    with acting(scene, topics=2, events_per_s=1) as anna:
        finish(scene.broker, consumer, [0], events)

    assert anna.topics == 2
    assert anna.wait_s() == 1.0


def test_an_epoch_makes_topics_for_whoever_commits_it() -> None:
    scene = Scene()
    now_s = scene.clock.now_s()

    with acting(scene, topics=1, events_per_s=1) as anna:
        for part, topic in enumerate(("a", "b")):
            columns = Columns([b"x"])
            epochs.stage(scene.broker, "q", 0, (part, 0), 0, topic, columns, now_s)
        assert anna.wait_s() == 1.0
        with pytest.raises(QuotaReached, match="topics is 1"):
            epochs.commit(scene.broker, "q", 0, [(0, 0), (1, 0)])
        assert not {"a", "b"} & set(scene.log.topics())
        epochs.commit(scene.broker, "q", 0, [(0, 0)])
        assert anna.topics == 1
        assert anna.wait_s() == 1.0  # it was charged for when it was staged
        with pytest.raises(QuotaReached, match="topics is 1"):
            epochs.stage(scene.broker, "q", 1, (0, 0), 0, "b", Columns([b"x"]), now_s)


# Bytes


def test_stored_bytes_are_those_of_the_topics_a_user_has_made() -> None:
    scene = Scene()

    with acting(scene, stored_bytes=3000) as anna:
        publish(scene, "a", 1000)
        publish(scene, "b", 1000)
        publish(scene, "t", 9000)  # somebody else's
        for topic in ("a", "c"):
            with pytest.raises(QuotaReached, match="stored_bytes is 3000"):
                publish(scene, topic, 1000)

    assert 2000 < anna.stored_bytes < 3000
    assert not scene.log.has_topic("c")


def test_what_others_publish_there_counts_at_the_next_look() -> None:
    scene = Scene()
    with acting(scene, stored_bytes=3000):
        publish(scene, "a", 100)
    publish(scene, "a", 5000)

    with acting(scene, stored_bytes=3000):
        publish(scene, "a", 100)
        scene.clock.advance(LOOK_S)
        with pytest.raises(QuotaReached):
            publish(scene, "a", 100)
        scene.broker.delete_topic("a")
        scene.commit()
        scene.clock.advance(LOOK_S)
        publish(scene, "a", 100)


# Rates


def test_rates_are_charged_by_the_batch_and_never_refuse() -> None:
    scene = Scene()

    with acting(scene, events_per_s=10) as anna:
        publish(scene, "t", count=10)
        assert anna.wait_s() == 0
        publish(scene, "t", count=30)
        assert anna.wait_s() == 3.0
        publish(scene, "t")

    assert anna.charges == 3
    assert str(anna.too_fast()).endswith("events_per_s is 10, wait 3 s")
    scene.clock.advance(3.1)
    assert anna.wait_s() == 0


def test_bytes_are_those_of_whole_events() -> None:
    scene = Scene()

    with acting(scene, bytes_per_s=1000) as anna:
        publish(scene, "t", size=1960)

    assert anna.wait_s() == 1.0


def test_what_becomes_a_dead_letter_is_charged_too() -> None:
    scene = Scene()

    with acting(scene, events_per_s=1) as anna:
        for _ in range(3):
            scene.broker.dead_letter(gateway="json", reason="nonsense", raw=b"x")

    assert anna.wait_s() == 2.0


def test_what_a_failed_try_has_written_is_charged() -> None:
    scene = Scene()
    scene.publish(0)
    with acting(scene, bytes_per_s=1000) as anna:
        consumer = scene.subscribe(Policy(tries=9))
        scene.take(consumer)

        scene.broker.refuse(consumer, 0, refused("x" * 2000), scene.now_s)

    assert 3 < anna.wait_s() < 4  # in the journal and in the error log
    assert scene.take(consumer) == []  # it is not tried again before that is paid
    scene.advance(4)
    assert scene.take(consumer) == [0]


def test_the_letter_of_a_refusal_is_charged() -> None:
    scene = Scene()
    publish(scene, "t", size=6000)
    with acting(scene, bytes_per_s=1000) as anna:
        consumer = scene.subscribe()
        scene.take(consumer)
        scene.broker.refuse(consumer, 0, refused("no"), scene.now_s, final=True)

    assert len(scene.letters()) == 1
    assert anna.wait_s() > 5  # it has a copy of the event


@pytest.mark.parametrize("backoff_s", [0, 0.1])
@pytest.mark.parametrize("left", ["unanswered", "gone"])
def test_whoever_gives_no_answer_pays_for_that_too(left: str, backoff_s: float) -> None:
    scene = Scene()
    scene.publish(*[0] * 20)
    with acting(scene, events_per_s=1) as anna:
        policy = Policy(
            tries=1_000_000, window=50, ack_timeout_s=0.5, backoff_s=backoff_s
        )
        consumer, other = scene.subscribe(policy), scene.subscribe(policy)
    taken = scene.take(consumer)

    if left == "gone":
        scene.broker.detach(consumer)
    else:
        scene.advance(0.6)

    assert anna.wait_s() == len(taken) - 1 == 19
    scene.advance(1)
    assert scene.take(other) == []
    scene.advance(19)
    assert scene.take(other) == taken


@RESTARTS
@pytest.mark.parametrize("checkpoint", [False, True])
def test_who_made_a_subscription_survives(restart: str, checkpoint: bool) -> None:
    scene = Scene()
    with acting(scene, subscriptions=2):
        scene.subscribe(name="one")
        scene.subscribe(name="two")
        scene.subscribe(name="two")
        with pytest.raises(QuotaReached, match="subscriptions is 2"):
            scene.subscribe(name="three")
    scene.commit()
    if checkpoint:
        scene.log.checkpoint()

    scene.restart(restart)

    assert scene.broker.accounts.users() == {"anna"}
    with acting(scene, subscriptions=2) as anna:
        assert anna.subscriptions == 2
        with pytest.raises(QuotaReached, match="subscriptions is 2"):
            scene.subscribe(name="three")
        scene.broker.forget("one", "t")
        scene.subscribe(name="three")
    with acting(scene, "bert", subscriptions=1):
        scene.subscribe(name="four")


def test_a_subscription_whose_topic_is_gone_does_not_count() -> None:
    scene = Scene()
    with acting(scene, subscriptions=1) as anna:
        publish(scene, "gone")
        scene.subscribe(topic="gone")
        scene.commit()

        scene.broker.delete_topic("gone")

        scene.commit()

    assert anna.subscriptions == 0


def test_nothing_is_charged_without_a_rate() -> None:
    scene = Scene()

    with acting(scene, topics=1) as anna:
        publish(scene, "t", count=100)

    assert not anna.paced
    assert (anna.charges, anna.wait_s()) == (0, 0.0)


def test_a_rate_that_is_changed_counts_at_once() -> None:
    scene = Scene()
    with acting(scene, events_per_s=1) as anna:
        publish(scene, "t", count=100)

    account(scene, events_per_s=1, topics=5)
    assert anna.wait_s() == 99.0
    account(scene, events_per_s=10)
    assert anna.wait_s() == 0
    account(scene)
    assert not anna.paced


def test_less_is_read_at_once_of_whoever_may_publish_little() -> None:
    scene = Scene()

    assert account(scene, events_per_s=1).read_bytes == LEAST_READ_BYTES
    assert account(scene, bytes_per_s=10_000).read_bytes == 10_000
    assert account(scene, bytes_per_s=10_000, events_per_s=100).read_bytes == 6400


def test_a_quota_may_be_looked_up_for_whoever_is_not_here() -> None:
    scene = Scene()
    accounts = scene.broker.accounts
    accounts.look_up = lambda user: Quota(topics=len(user))

    found = accounts.named("anna")

    assert found is not None and found.quota == Quota(topics=4)
    assert accounts.named("") is None


# At which second, how much is taken, and how long one has to wait behind that.
Step = tuple[float, float, float]


@pytest.mark.parametrize(
    ("rate", "steps"),
    [
        pytest.param(10, [(0, 10, 0), (0, 1, 0.1)], id="a second's worth at once"),
        pytest.param(10, [(0, 10, 0), (1, 10, 0)], id="as much a second later"),
        pytest.param(10, [(99, 10, 0), (99, 5, 0.5)], id="no more after long silence"),
        pytest.param(10, [(0, 50, 4), (2, 0, 2), (4, 0, 0)], id="a batch too large"),
        pytest.param(10, [(0, 20, 1), (0, 10, 2)], id="debts add up"),
        pytest.param(10, [(0, 20, 1), (1, 1, 0.1)], id="paid is not full"),
        pytest.param(1, [(0, 1, 0), (0, 1, 1)], id="one event a second"),
        pytest.param(10, [(5, 20, 1), (0, 0, 1), (1, 0, 0)], id="a clock set back"),
    ],
)
def test_what_is_taken_and_how_long_one_waits(rate: float, steps: list[Step]) -> None:
    bucket = Bucket(rate, 0.0)

    for now_s, amount, wait_s in steps:
        bucket.take(amount, now_s)
        assert bucket.wait_s(now_s) == pytest.approx(wait_s)


@given(
    st.floats(1, 1e6),
    st.lists(st.tuples(st.floats(0, 10), st.floats(0, 1e7)), max_size=50),
)
def test_whoever_waits_as_told_keeps_the_rate(
    rate: float, steps: list[tuple[float, float]]
) -> None:
    bucket, now_s, taken = Bucket(rate, 0.0), 0.0, 0.0

    for pause_s, amount in steps:
        now_s += pause_s + bucket.wait_s(now_s + pause_s)
        # What was taken before is within the rate, and a second's worth.
        assert taken <= rate * (now_s + 1) * (1 + 1e-6) + 1e-6
        bucket.take(amount, now_s)
        taken += amount
