from __future__ import annotations

from typing import cast

import pytest

from penstock.desk.desk import progress
from penstock.desk.views.subscriptions import MovedSubscription
from penstock.desk.views.topics import TopicPage
from penstock.errors import (
    InvalidArgument,
    InvalidOption,
    NotMoved,
    PenstockError,
    ReservedName,
    TopicExists,
    UnknownSubscription,
    UnknownTopic,
    UnknownVerb,
)
from penstock.model.failure import refused
from tests.unit.desk.office import Office, Outlet


def test_topics_are_listed_by_name_a_page_at_a_time(office: Office) -> None:
    for name in ("c", "a", "b"):
        office.publish(name, b"12345", b"6")

    first = office.desk.topics(limit=2)
    second = office.desk.topics(limit=2, after="b")

    assert [(t.name, t.events, t.end_offset) for t in first.topics] == [
        ("a", 2, 2),
        ("b", 2, 2),
    ]
    assert ([t.name for t in second.topics], first.more, second.more) == (
        ["c"],
        True,
        False,
    )
    assert all(topic.bytes > 6 for topic in first.topics)


def test_own_topics_are_listed_if_asked_for(office: Office) -> None:
    office.raw_letter()

    assert office.desk.topics().topics == []
    assert [t.name for t in office.desk.topics(own=True).topics] == ["$dead-letters"]


def test_a_topic_shows_its_settings_priorities_and_readers(office: Office) -> None:
    office.desk.create_topic(name="t", durability="os", retention_bytes=9, compact=True)
    office.publish("t", b"0", b"1", priorities=[0, 7])
    office.subscribe("me", "t")

    topic = office.desk.topic(name="t")

    assert (topic.durability, topic.retention_bytes, topic.compact) == ("os", 9, True)
    assert topic.retention_age_s is None
    assert (topic.levels, topic.subscriptions) == ([7, 0], 1)
    assert [(one.subscriber, one.lag) for one in topic.readers] == [("me", 2)]


def test_a_topic_without_priorities_has_one_level(office: Office) -> None:
    office.publish("t", b"0")

    assert office.desk.topic(name="t").levels == [0]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"name": "t"}, TopicExists),
        ({"name": "$t"}, ReservedName),
        ({"name": "u", "retention_age_s": -1}, InvalidOption),
    ],
)
def test_a_topic_that_cannot_be_is_refused(
    office: Office, arguments: dict[str, object], error: type[PenstockError]
) -> None:
    office.publish("t", b"0")

    with pytest.raises(error):
        office.desk.ask("topics.create", arguments)


def test_a_deleted_topic_is_gone_with_its_subscriptions(office: Office) -> None:
    office.publish("t", b"0", b"1")
    consumer = office.subscribe("me", "t")

    gone = office.desk.delete_topic(name="t")

    office.commit()

    assert (gone.name, gone.events, gone.subscriptions) == ("t", 2, 1)
    assert cast(Outlet, consumer.outlet).reasons == ["the topic was deleted"]
    assert office.desk.subscriptions().subscriptions == []
    with pytest.raises(UnknownTopic):
        office.desk.topic(name="t")


def test_topics_of_the_broker_are_not_deleted(office: Office) -> None:
    office.raw_letter()

    with pytest.raises(ReservedName):
        office.desk.delete_topic(name="$dead-letters")
        office.commit()


def test_subscriptions_are_listed_by_number_a_page_at_a_time(office: Office) -> None:
    office.publish("t", b"0")
    office.publish("u", b"0")
    for name in ("b", "a"):
        office.subscribe(name, "t")
        office.subscribe(name, "u")
    listed = office.desk.subscriptions

    first = listed(limit=3)
    second = listed(limit=3, after=first.subscriptions[-1].number)

    names = [(one.subscriber, one.topic) for one in first.subscriptions]
    assert names == [("b", "t"), ("b", "u"), ("a", "t")]
    assert (first.more, second.more, len(second.subscriptions)) == (True, False, 1)
    assert {one.topic for one in listed(subscriber="a").subscriptions} == {"t", "u"}
    assert len(listed(topic="t").subscriptions) == 2
    (one,) = listed(topic="t", subscriber="a").subscriptions
    assert (one.subscriber, one.topic) == ("a", "t")


def test_a_subscription_shows_where_it_stands_and_what_it_owes(office: Office) -> None:
    office.publish("t", b"0", b"1", b"2", b"3", priorities=[0, 5, 0, 0])
    me = office.subscribe(
        "me", "t", order="priority", window=3, tries=4, ack_timeout_s=30, backoff_s=2
    )
    assert office.take(me) == [(1, 1), (0, 1), (2, 1)]
    me.subscription.settle(1)
    office.broker.refuse(me, 2, refused("no"), office.now_s)

    view = office.desk.subscription(subscriber="me", topic="t")

    assert (view.position, view.lag, view.in_flight, view.owed) == (0, 3, 1, 2)
    assert (view.state, view.consumers, view.order) == ("connected", 1, "priority")
    assert (view.window, view.tries, view.qos) == (3, 4, 1)
    assert (view.backoff_s, view.backoff_factor) == (2.0, 2.0)
    assert (view.max_backoff_s, view.jitter) == (300.0, 0.0)
    zero, two = view.deliveries
    assert (zero.offset, zero.stage, zero.tries, zero.errors) == (0, "in flight", 1, [])
    assert (two.offset, two.stage, two.errors, two.priority) == (
        2,
        "waiting",
        ["no"],
        0,
    )
    assert two.due_ms == int((office.now_s + 2) * 1000)


def test_deliveries_that_are_too_many_are_cut(office: Office) -> None:
    office.publish("t", *[b"x"] * 9)
    office.take(office.subscribe("me", "t"))

    view = office.desk.subscription(subscriber="me", topic="t", limit=4)

    assert [one.offset for one in view.deliveries] == [0, 1, 2, 3]
    assert view.more_deliveries
    assert view.deliveries[0].priority is None


def test_the_state_of_a_subscription_follows_its_consumers(office: Office) -> None:
    office.publish("t", b"0")
    me = office.subscribe("me", "t", tries=1, exhausted="suspend")

    def state() -> str:
        return office.desk.subscription(subscriber="me", topic="t").state

    assert state() == "connected"
    office.broker.detach(me)
    assert state() == "away"
    me = office.subscribe("me", "t", tries=1, exhausted="suspend")
    office.broker.unsubscribe(me)
    assert state() == "unsubscribed"
    me = office.subscribe("me", "t", tries=1, exhausted="suspend")
    office.bury(me)
    assert state() == "suspended"


def test_a_suspended_subscription_goes_on_when_it_is_told_to(office: Office) -> None:
    office.publish("t", b"0")
    office.bury(office.subscribe("me", "t", tries=1, exhausted="suspend"))

    resumed = office.desk.resume(subscriber="me", topic="t")
    office.commit()
    office.restart()

    assert resumed.state == "away"
    assert office.desk.subscription(subscriber="me", topic="t").state == "away"
    assert office.take(office.subscribe("me", "t")) == [(0, 1)]


def test_resuming_changes_nothing_else(office: Office) -> None:
    office.publish("t", b"0")
    office.broker.unsubscribe(office.subscribe("me", "t"))

    assert office.desk.resume(subscriber="me", topic="t").state == "unsubscribed"
    with pytest.raises(UnknownSubscription):
        office.desk.resume(subscriber="you", topic="t")


def test_a_forgotten_subscription_is_gone(office: Office) -> None:
    office.publish("t", b"0")
    me = office.subscribe("me", "t")

    gone = office.desk.forget(subscriber="me", topic="t")

    assert (gone.subscriber, gone.lag) == ("me", 1)
    assert cast(Outlet, me.outlet).reasons == ["the subscription was forgotten"]
    with pytest.raises(UnknownSubscription):
        office.desk.forget(subscriber="me", topic="t")


def test_seeking_moves_a_subscription_and_forgets_what_it_owes(office: Office) -> None:
    office.publish("t", b"0", b"1", b"2")
    me = office.subscribe("me", "t", "latest")

    moved = office.desk.seek(subscriber="me", topic="t", start=1)

    assert moved.position == 1
    assert office.take(me) == [(1, 1), (2, 1)]
    assert office.desk.seek(subscriber="me", topic="t", start="latest").position == 3
    assert office.desk.subscription(subscriber="me", topic="t").lag == 0


def test_seeking_to_nowhere_is_refused(office: Office) -> None:
    office.publish("t", b"0")
    office.subscribe("me", "t")

    with pytest.raises(InvalidOption):
        office.desk.seek(subscriber="me", topic="t", start="soon")


def test_questions_are_asked_by_name(office: Office) -> None:
    office.publish("t", b"0")

    page = office.desk.ask("topics", {"limit": 5})

    assert isinstance(page, TopicPage)
    assert page == office.desk.topics(limit=5)


@pytest.mark.parametrize(
    ("verb", "arguments", "error", "text"),
    [
        ("topic", {}, UnknownVerb, "did you mean topics?"),
        ("topics", {"limt": 1}, InvalidArgument, "there is no argument `limt`"),
        ("topics", {"limit": 0}, InvalidArgument, "(argument `limit`)"),
        ("topics", {"limit": 1001}, InvalidArgument, "(argument `limit`)"),
        ("topics.show", {}, InvalidArgument, "has to be an argument `name`"),
        ("topics.show", {"name": 5}, InvalidArgument, "expected `str`, got `int`"),
    ],
)
def test_what_cannot_be_asked_is_said_clearly(
    office: Office,
    verb: str,
    arguments: dict[str, object],
    error: type[PenstockError],
    text: str,
) -> None:
    with pytest.raises(error) as caught:
        office.desk.ask(verb, arguments)

    assert text in str(caught.value)


def test_every_verb_is_known_by_name(office: Office) -> None:
    assert sorted(office.desk.verbs) == [
        "chains.show",
        "config",
        "connections",
        "dead-letters",
        "dead-letters.audit",
        "dead-letters.drop",
        "dead-letters.edit",
        "dead-letters.groups",
        "dead-letters.republish",
        "dead-letters.show",
        "errors",
        "errors.groups",
        "errors.show",
        "events.find",
        "events.show",
        "flow",
        "logs",
        "mqtt.retained",
        "mqtt.retained.forget",
        "mqtt.retained.show",
        "mqtt.sessions",
        "mqtt.sessions.end",
        "mqtt.sessions.show",
        "overview",
        "pipeline",
        "processes",
        "schemas",
        "schemas.check",
        "schemas.mock",
        "schemas.mode",
        "schemas.register",
        "schemas.show",
        "sinks",
        "sinks.abort",
        "sinks.commit",
        "sinks.last",
        "subscriptions",
        "subscriptions.forget",
        "subscriptions.progress",
        "subscriptions.resume",
        "subscriptions.seek",
        "subscriptions.show",
        "topics",
        "topics.comment",
        "topics.comments",
        "topics.create",
        "topics.delete",
        "topics.describe",
        "topics.offset_at",
        "topics.show",
        "topics.uncomment",
        "users.usage",
    ]


def test_a_reader_that_keeps_its_place_tells_where_it_is(office: Office) -> None:
    office.publish("t", b"1", b"2", b"3")
    arguments = {"subscriber": "spark:q", "topic": "t", "by": "ann"}

    made = office.desk.ask("subscriptions.progress", {**arguments, "offset": 1})
    moved = office.desk.ask("subscriptions.progress", {**arguments, "offset": 2})

    assert made == MovedSubscription(subscriber="spark:q", topic="t", position=1)
    assert moved == MovedSubscription(subscriber="spark:q", topic="t", position=2)
    (row,) = office.desk.subscriptions(subscriber="spark:q").subscriptions
    assert (row.lag, row.state, row.owed) == (1, "away", 0)


def test_progress_makes_a_subscription_that_has_a_lag(office: Office) -> None:
    office.publish("t", b"1", b"2", b"3")

    one = progress(office.broker, "spark:q", "t", 1)
    office.commit()
    office.restart()

    assert (one.position(), one.lag()) == (1, 2)
    row = office.desk.subscription(subscriber="spark:q", topic="t")
    assert (row.position, row.lag, row.state) == (1, 2, "away")


@pytest.mark.parametrize(
    ("offset", "position"), [(0, 0), (2, 2), (3, 3), (99, 3)], ids=str
)
def test_progress_moves_it_both_ways(
    office: Office, offset: int, position: int
) -> None:
    office.publish("t", b"1", b"2", b"3")
    progress(office.broker, "spark:q", "t", 1)
    office.commit()

    progress(office.broker, "spark:q", "t", offset)
    office.commit()
    office.restart()

    assert office.broker.subscription("spark:q", "t").position() == position


def test_progress_that_is_none_writes_nothing(office: Office) -> None:
    office.publish("t", b"1")
    progress(office.broker, "spark:q", "t", 1)
    office.commit()

    progress(office.broker, "spark:q", "t", 1)

    assert not office.broker.dirty


def test_progress_outlives_a_failed_write(office: Office) -> None:
    office.publish("t", b"1", b"2")
    progress(office.broker, "spark:q", "t", 2)
    office.fail_commit()

    office.commit()
    office.restart()

    assert office.broker.subscription("spark:q", "t").position() == 2


def test_a_subscription_with_consumers_is_not_moved(office: Office) -> None:
    office.publish("t", b"1", b"2")
    office.subscribe("me", "t")

    with pytest.raises(NotMoved, match="1 consume it"):
        progress(office.broker, "me", "t", 2)

    assert office.broker.subscription("me", "t").position() == 0


def test_a_subscription_that_is_owed_something_is_not_moved(office: Office) -> None:
    office.publish("t", b"1", b"2")
    me = office.subscribe("me", "t")
    office.take(me)
    office.broker.detach(me)

    with pytest.raises(NotMoved, match="2 events that were delivered"):
        progress(office.broker, "me", "t", 2)


def test_names_and_topics_are_those_that_may_be(office: Office) -> None:
    office.publish("t", b"1")

    with pytest.raises(ReservedName):
        progress(office.broker, "$me", "t", 0)
    with pytest.raises(UnknownTopic):
        progress(office.broker, "me", "u", 0)
