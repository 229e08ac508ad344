"""Which sessions hear of which topics."""

from __future__ import annotations

import pytest

from penstock.delivery.handshake import Reply
from penstock.log import Columns
from penstock.sessions import TopicFilter
from penstock.sessions import routes as routes_module
from penstock.sessions.retained import TOPIC as RETAINED
from penstock.sessions.session import NO_OUTLET, DeliveryTerms
from tests.unit.delivery.scene import RESTARTS
from tests.unit.sessions.scene import (
    Scene,
    consumer_of,
    share_of,
    subscription_of,
)

GROUP = "$share/g/t/#"


@pytest.fixture
def scene() -> Scene:
    return Scene()


# From filters to subscriptions


def test_a_wish_makes_no_subscription_before_there_are_events(scene: Scene) -> None:
    ann = scene.come()

    scene.subscribe_to(ann, "#")
    scene.commit()

    assert scene.subscriptions() == []


def test_an_event_makes_the_subscription_that_begins_with_it(scene: Scene) -> None:
    ann = scene.come()
    scene.events("t", 3)
    scene.subscribe_to(ann, "t")

    scene.events("t", 2)

    assert scene.got(ann) == {"t": [3, 4]}


@RESTARTS
def test_event_and_subscription_are_in_one_group(scene: Scene, restart: str) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "new/+")
    scene.go(ann)
    scene.commit()
    scene.events("new/topic", 2)

    scene.restart(restart)

    assert scene.got(scene.come()) == {"new/topic": [0, 1]}


def test_what_failed_to_be_stored_leaves_no_subscription_behind(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "#")
    scene.commit()
    scene.broker.publish("new", Columns([b"lost"]))
    scene.fail_commit()

    scene.events("new", 1)

    assert scene.subscriptions() == [("$mqtt/ann", "new")]
    assert scene.got(ann) == {"new": [0]}


def test_a_wish_hears_what_comes_behind_it_in_the_same_group(scene: Scene) -> None:
    ann = scene.come()
    scene.events("t", 2, commit=False)
    scene.events("new", 1, commit=False)
    for filter_ in ("#", "t"):
        scene.subscribe_to(ann, filter_)
    scene.events("t", 1, commit=False)
    scene.events("new", 1, commit=False)
    scene.commit()

    assert scene.got(ann) == {"t": [2], "new": [1]}


@pytest.mark.parametrize("again", ["#", "new", "+"])
def test_a_second_wish_takes_nothing_from_the_first(scene: Scene, again: str) -> None:
    """Events in the same group, in front of it, are for the first."""
    ann = scene.come()
    scene.subscribe_to(ann, "#")
    scene.commit()
    scene.events("new", 2, commit=False)

    scene.subscribe_to(ann, again)
    scene.events("new", 1)

    assert scene.got(ann) == {"new": [0, 1, 2]}


def test_topics_that_no_wish_matches_make_none(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "a/+")
    scene.events("b/c")
    scene.events("a/b/c")

    assert scene.shares(ann) == []


def test_topics_of_the_system_are_not_matched_by_wildcards(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "#")
    scene.broker.dead_letter(gateway="line", reason="junk", raw=b"x")
    scene.commit()

    assert scene.shares(ann) == []


def test_a_topic_is_looked_up_again_when_somebody_wishes_for_it(scene: Scene) -> None:
    ann, bob = scene.come("ann"), scene.come("bob")
    scene.subscribe_to(ann, "t")
    scene.events("t")
    scene.subscribe_to(bob, "+")

    scene.events("t")

    assert scene.got(bob) == {"t": [1]}
    assert scene.got(ann) == {"t": [0, 1]}


def test_a_topic_that_was_deleted_begins_anew(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "t")
    scene.events("t", 2)
    scene.broker.delete_topic("t")
    scene.commit()

    scene.events("t")

    assert scene.got(ann) == {"t": [0]}


def test_topics_known_are_forgotten_before_they_are_too_many(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes_module, "MAX_ROUTED", 2)
    ann = scene.come()
    scene.subscribe_to(ann, "#")
    for number in range(5):
        scene.events(f"topic/{number}")

    for number in range(5):
        scene.events(f"topic/{number}")

    assert scene.got(ann) == {f"topic/{number}": [0, 1] for number in range(5)}


# Terms


def test_wishes_that_overlap_are_one_delivery_by_the_best_terms(scene: Scene) -> None:
    ann = scene.come()
    sessions = scene.broker.sessions
    sessions.subscribe(ann, TopicFilter("t", 0, no_local=True, identifier=9))
    sessions.subscribe(ann, TopicFilter("+", 2, no_local=True))
    sessions.subscribe(ann, TopicFilter("#", 1, retain_as_published=True, identifier=3))
    scene.events("t")

    assert scene.got(ann) == {"t": [0]}
    terms = sessions.routes.terms(ann, share_of(ann))
    assert terms == DeliveryTerms(2, False, True, (3, 9))


def test_terms_follow_the_wishes(scene: Scene) -> None:
    ann, sessions = scene.come(), scene.broker.sessions
    sessions.subscribe(ann, TopicFilter("t", 1, no_local=True))
    scene.events("t")
    assert sessions.routes.terms(ann, share_of(ann)).no_local

    sessions.subscribe(ann, TopicFilter("t", 2))
    assert sessions.routes.terms(ann, share_of(ann)) == DeliveryTerms(
        2, False, False, ()
    )

    sessions.subscribe(ann, TopicFilter("#", 1, identifier=4))
    assert sessions.routes.terms(ann, share_of(ann)) == DeliveryTerms(
        2, False, False, (4,)
    )

    sessions.unsubscribe(ann, "t")
    assert sessions.routes.terms(ann, share_of(ann)) == DeliveryTerms(
        1, False, False, (4,)
    )


def test_terms_of_a_topic_nobody_wishes_for_are_none(scene: Scene) -> None:
    ann = scene.come()

    assert scene.broker.sessions.routes.terms_of(ann, "t") == DeliveryTerms(
        0, False, False, ()
    )


# QoS 0


def test_nothing_is_kept_for_who_wants_qos_0_and_is_away(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "t", qos=0)
    scene.events("t")
    scene.got(ann)
    scene.go(ann)

    scene.events("t", 3)

    assert scene.subscriptions() == []
    assert scene.got(scene.come()) == {}
    scene.events("t")
    assert scene.got(ann) == {"t": [4]}


def test_a_wish_for_answers_makes_a_share_of_qos_0_ask_for_them(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "#", qos=0)
    scene.events("t", 2)
    assert scene.got(ann) == {"t": [0, 1]}

    scene.subscribe_to(ann, "t", qos=1)
    scene.events("t")
    scene.go(ann)
    scene.restart()

    assert scene.got(scene.come()) == {"t": [2]}


def test_a_session_that_ends_with_its_connection_leaves_nothing(scene: Scene) -> None:
    ann = scene.come(expiry_s=0)
    scene.subscribe_to(ann, "t")
    scene.events("t")
    scene.go(ann)
    scene.broker.sessions.end(ann)

    scene.restart()

    assert scene.subscriptions() == []
    assert len(scene.broker.sessions) == 0


# Ends


def test_without_a_wish_a_share_goes(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "t")
    scene.events("t")

    scene.broker.sessions.unsubscribe(ann, "t")

    assert (scene.shares(ann), scene.subscriptions()) == ([], [])
    scene.events("t")
    assert scene.shares(ann) == []


def test_a_share_stays_while_another_wish_is_for_it(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "t")
    scene.subscribe_to(ann, "+")
    scene.events("t")

    scene.broker.sessions.unsubscribe(ann, "t")

    assert scene.got(ann) == {"t": [0]}


def test_what_is_in_flight_is_completed_without_a_wish(scene: Scene) -> None:
    ann, routes = scene.come(), scene.broker.sessions.routes
    scene.subscribe_to(ann, "t")
    scene.events("t", 2)
    ids = scene.send(ann)

    scene.broker.sessions.unsubscribe(ann, "t")

    share = share_of(ann)
    assert share.ending
    for in_flight in ann.packet_ids.answered(Reply.ACK, ids):
        share.subscription.settle(in_flight.offset)
    routes.end(ann, share)
    assert (scene.shares(ann), scene.subscriptions()) == ([], [])


def test_who_wishes_again_hears_nothing_of_the_time_between(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "t")
    scene.events("t")
    scene.send(ann)
    scene.broker.sessions.unsubscribe(ann, "t")
    scene.events("t", 2)

    scene.subscribe_to(ann, "t")
    scene.events("t")

    assert not share_of(ann).ending
    assert scene.got(ann) == {"t": [3]}


def test_shares_that_are_done_are_swept_away_and_come_back(scene: Scene) -> None:
    ann, routes = scene.come(), scene.broker.sessions.routes
    scene.subscribe_to(ann, "#")
    for topic in ("a", "b", "c"):
        scene.events(topic)
    for topic in ("a", "b"):
        (id_,) = scene.send(ann, topic)
        for in_flight in ann.packet_ids.answered(Reply.ACK, [id_]):
            subscription_of(ann, topic).settle(in_flight.offset)

    assert routes.sweep(ann) == 2

    assert scene.shares(ann) == ["c"]
    scene.events("a")
    assert scene.got(ann) == {"a": [1], "c": [0]}


# Retained


def test_a_share_in_what_is_retained_brings_only_what_is_owed(scene: Scene) -> None:
    ann, routes = scene.come(), scene.broker.sessions.routes
    scene.broker.publish("t", Columns([b"x"]), keep=True)
    scene.commit()

    share = routes.retained_share(ann, durable=True)

    assert share.topic == RETAINED
    assert scene.got(ann) == {}
    share.subscription.add_back(0, 0)
    assert scene.got(ann) == {RETAINED: [0]}
    assert routes.retained_share(ann, durable=True) is share


# Groups


def test_a_group_shares_the_events_of_its_filter(scene: Scene) -> None:
    ann, bob = scene.come("ann"), scene.come("bob")
    for one in (ann, bob):
        scene.subscribe_to(one, GROUP)

    scene.events("t", 4)

    first = scene.got(ann)["t"]
    second = scene.got(bob).get("t", [])
    assert sorted(first + second) == [0, 1, 2, 3]
    assert scene.subscriptions() == [("$share/g/t/#", "t")]


def test_groups_of_other_names_get_everything_once_more(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, GROUP)
    scene.subscribe_to(ann, "$share/h/t/#")
    scene.subscribe_to(ann, "t")

    scene.events("t")

    assert scene.shares(ann) == ["t", "t", "t"]
    assert len(scene.broker.subscriptions) == 3


def test_who_joins_later_shares_what_is_left(scene: Scene) -> None:
    ann, bob = scene.come("ann"), scene.come("bob")
    scene.subscribe_to(ann, GROUP)
    scene.events("t", 2)

    scene.subscribe_to(bob, GROUP)

    assert scene.take(consumer_of(bob), 1) == [0]
    assert scene.got(ann) == {"t": [1]}


def test_what_a_member_had_with_qos_1_goes_to_others_when_it_leaves(
    scene: Scene,
) -> None:
    ann, bob = scene.come("ann"), scene.come("bob")
    scene.subscribe_to(ann, GROUP)
    scene.events("t", 2)
    assert len(scene.send(ann)) == 2
    scene.subscribe_to(bob, GROUP)

    scene.go(ann)

    assert scene.got(bob) == {"t": [0, 1]}
    assert len(ann.packet_ids) == 0


def test_what_was_begun_with_qos_2_is_completed_with_the_same_client(
    scene: Scene,
) -> None:
    ann, bob = scene.come("ann"), scene.come("bob")
    scene.subscribe_to(ann, GROUP, qos=2)
    scene.events("t", 2)
    assert len(scene.send(ann, qos=2)) == 2
    scene.subscribe_to(bob, GROUP, qos=2)

    scene.go(ann)

    assert scene.got(bob) == {}
    assert consumer_of(ann).outlet is NO_OUTLET
    scene.come("ann")
    assert scene.got(ann) == {}  # they are in flight with it still
    assert consumer_of(ann).holds(0)
    assert consumer_of(ann).holds(1)


def test_a_group_without_members_is_gone_with_its_subscriptions(scene: Scene) -> None:
    ann, bob = scene.come("ann"), scene.come("bob")
    for one in (ann, bob):
        scene.subscribe_to(one, GROUP)
    scene.events("t")

    scene.broker.sessions.unsubscribe(ann, GROUP)
    assert len(scene.broker.subscriptions) == 1
    scene.broker.sessions.end(bob)

    assert scene.subscriptions() == []
    scene.events("t")
    assert scene.subscriptions() == []


def test_a_member_that_wishes_again_has_its_new_terms(scene: Scene) -> None:
    ann, routes = scene.come(), scene.broker.sessions.routes
    scene.subscribe_to(ann, GROUP, qos=1)
    scene.events("t")

    scene.subscribe_to(ann, GROUP, qos=2)

    assert routes.terms(ann, share_of(ann)).qos == 2
    assert scene.shares(ann) == ["t"]


@RESTARTS
def test_a_group_is_there_again_after_a_restart(scene: Scene, restart: str) -> None:
    ann = scene.come("ann")
    scene.subscribe_to(ann, GROUP)
    scene.go(ann)
    scene.commit()
    scene.events("t", 2)

    scene.restart(restart)
    scene.events("t/more")

    assert scene.got(scene.come("ann")) == {"t": [0, 1], "t/more": [0]}
    assert scene.broker.sessions.routes.subscribers() == {"$share/g/t/#"}


ONE_TOPIC = "$share/g/t"


def test_what_was_sent_is_in_flight_again_with_who_comes_back(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "t")
    scene.events("t", 2)
    scene.send(ann)
    scene.events("t", 1)

    scene.go(ann)
    scene.come()

    assert [consumer_of(ann).holds(offset) for offset in (0, 1)] == [True, True]
    assert scene.got(ann) == {"t": [2]}


def test_an_answer_settles_what_was_not_sent_again_yet(scene: Scene) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "t")
    scene.events("t", 1)
    ids = scene.send(ann)
    scene.go(ann)
    scene.come()

    (in_flight,) = ann.packet_ids.answered(Reply.ACK, ids)
    settled = subscription_of(ann).settle_all([in_flight.offset], consumer_of(ann))

    assert settled == 1
    assert subscription_of(ann).drained


@RESTARTS
def test_what_a_group_began_with_qos_2_is_for_the_same_client_after_a_restart(
    scene: Scene, restart: str
) -> None:
    ann, bob = scene.come("ann"), scene.come("bob")
    for one in (ann, bob):
        scene.subscribe_to(one, ONE_TOPIC, qos=2)
    scene.events("t", 1)
    ids = scene.send(ann, qos=2)
    scene.broker.sessions.note(ann, urgent=True)
    scene.commit()

    scene.restart(restart)

    assert scene.got(scene.come("bob")) == {}
    ann = scene.come("ann")
    assert consumer_of(ann).holds(0)
    assert list(ann.packet_ids.out) == ids


@RESTARTS
def test_what_a_group_sent_with_qos_1_is_for_anybody_after_a_restart(
    scene: Scene, restart: str
) -> None:
    ann, bob = scene.come("ann"), scene.come("bob")
    for one in (ann, bob):
        scene.subscribe_to(one, ONE_TOPIC)
    scene.events("t", 1)
    scene.send(ann)
    scene.broker.sessions.note(ann, urgent=True)
    scene.commit()

    scene.restart(restart)

    assert scene.got(scene.come("bob")) == {"t": [0]}
    assert len(scene.session("ann").packet_ids) == 0


def test_a_member_that_leaves_and_joins_again_completes_what_it_has(
    scene: Scene,
) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, ONE_TOPIC, qos=2)
    scene.subscribe_to(scene.come("bob"), ONE_TOPIC, qos=2)
    scene.events("t", 1)
    scene.send(ann, qos=2)
    before = share_of(ann)

    scene.broker.sessions.unsubscribe(ann, ONE_TOPIC)
    scene.subscribe_to(ann, ONE_TOPIC, qos=2)

    assert share_of(ann) is before
    assert not before.ending
    assert len(before.subscription.consumers) == 2


def test_a_share_whose_topic_has_events_on_their_way_is_not_swept(
    scene: Scene,
) -> None:
    ann = scene.come()
    scene.subscribe_to(ann, "t")
    scene.events("t", 1)
    scene.send(ann)
    subscription_of(ann).settle_all([0], consumer_of(ann))
    scene.events("t", 1, commit=False)

    assert scene.broker.sessions.routes.sweep(ann) == 0

    scene.commit()
    assert scene.got(ann) == {"t": [1]}
