from __future__ import annotations

from typing import Any

import pytest

from penstock.desk import events as desk_events
from penstock.desk.events import EventDesk
from penstock.desk.scan import Budget
from penstock.desk.views.events import DeliveryRow, EventDetail, EventMatches
from penstock.errors import InvalidArgument, UnknownEvent, UnknownTopic
from penstock.log import Columns
from penstock.model.failure import refused
from tests.unit.desk.office import Office


def show(office: Office, offset: int, topic: str = "t") -> EventDetail:
    detail = office.desk.ask("events.show", {"topic": topic, "offset": offset})
    assert isinstance(detail, EventDetail)
    return detail


def delivery(office: Office, offset: int) -> DeliveryRow:
    (row,) = show(office, offset).deliveries
    return row


def find(office: Office, **arguments: Any) -> EventMatches:
    found = office.desk.ask("events.find", arguments)
    assert isinstance(found, EventMatches)
    return found


def test_an_event_is_told_with_everything_it_has(office: Office) -> None:
    columns = Columns(
        [b"a", b"b"],
        [5, 6],
        ids=["x", "y"],
        keys=[b"k", None],
        priorities=[0, 3],
        headers=[{}, {"type": "order"}],
        parents=[None, "x"],
        producer="shop",
    )
    office.broker.publish("t", columns)
    office.commit()

    event = show(office, 1).event

    assert (event.topic, event.offset, event.id) == ("t", 1, "y")
    assert (event.timestamp, event.priority, event.key) == (6, 3, None)
    assert (event.headers, event.parent) == ({"type": "order"}, "x")
    assert (event.producer, event.payload) == ("shop", b"b")


def test_a_delivery_goes_through_its_states(office: Office) -> None:
    office.publish("t", b"0", b"1", b"2")
    consumer = office.subscribe("anna", "t", 1, window=1, backoff_s=60, tries=2)
    one, broker = consumer.subscription, office.broker

    assert delivery(office, 0).state == "before"
    assert delivery(office, 1).state == "not yet"

    broker.take(consumer, office.now_s, 1)
    row = delivery(office, 1)
    assert (row.state, row.tries, row.errors) == ("in flight", 1, [])
    assert row.subscriber == "anna" and not row.temporary

    broker.refuse(consumer, 1, refused("no"), office.now_s)
    row = delivery(office, 1)
    assert (row.state, row.tries) == ("waiting", 1)
    assert row.due_ms == int((office.now_s + 60) * 1000)
    assert [error.message for error in row.errors] == ["no"]

    office.clock.advance(61)
    broker.tick(office.now_s)
    broker.take(consumer, office.now_s, 1)
    broker.refuse(consumer, 1, refused("never"), office.now_s)
    office.commit()
    row = delivery(office, 1)
    assert (row.state, row.tries, row.letter) == ("dead letter", 2, 0)
    assert [error.message for error in row.errors] == ["no", "never"]

    broker.take(consumer, office.now_s, 1)
    one.settle(2)
    row = delivery(office, 2)
    assert (row.state, row.tries, row.letter) == ("settled", 1, None)


def test_an_event_whose_time_has_not_come_is_not_settled(office: Office) -> None:
    now_ms = int(office.now_s * 1000)
    late = Columns([b"late"], now_ms, not_before=[now_ms + 60_000])
    office.publish("t", b"0")
    office.broker.publish("t", late)
    office.commit()
    consumer, broker = office.subscribe("anna", "t"), office.broker
    broker.take(consumer, office.now_s, 10)

    assert delivery(office, 0).state == "in flight"
    row = delivery(office, 1)
    assert (row.state, row.tries, row.due_ms) == ("not yet", 0, now_ms + 60_000)

    office.clock.advance(60)
    broker.tick(office.now_s)
    assert delivery(office, 1).state == "not yet"

    broker.take(consumer, office.now_s, 10)
    assert delivery(office, 1).state == "in flight"


def test_looking_changes_nothing(office: Office) -> None:
    office.publish("t", *(b"%d" % n for n in range(10)))
    consumer = office.subscribe("anna", "t")
    office.broker.take(consumer, office.now_s, 10)
    runs = consumer.subscription.owed.runs

    show(office, 4)

    assert consumer.subscription.owed.runs == runs


def test_a_letter_that_was_sent_again_and_handled_is_settled(office: Office) -> None:
    office.publish("t", b"0")
    consumer = office.subscribe("anna", "t")
    office.broker.take(consumer, office.now_s, 1)
    office.broker.refuse(consumer, 0, refused("no"), office.now_s, final=True)
    office.commit()
    assert delivery(office, 0).state == "dead letter"

    office.desk.ask("dead-letters.republish", {"numbers": [0]})
    office.commit()
    assert delivery(office, 0).state in ("waiting", "in flight")
    office.broker.take(consumer, office.now_s, 1)
    consumer.subscription.settle(0)
    office.commit()

    row = delivery(office, 0)
    assert (row.state, row.letter) == ("settled", 0)


def test_letters_of_other_events_and_topics_are_not_its_own(office: Office) -> None:
    office.publish("t", b"0", b"1")
    office.publish("u", b"0", b"1")
    for topic in ("t", "u"):
        consumer = office.subscribe("anna", topic)
        office.broker.take(consumer, office.now_s, 2)
        consumer.subscription.settle(0)
        if topic == "u":
            office.broker.refuse(consumer, 1, refused("no"), office.now_s, final=True)
        else:
            consumer.subscription.settle(1)
    office.commit()

    assert [row.state for row in show(office, 1).deliveries] == ["settled"]
    assert [row.state for row in show(office, 1, "u").deliveries] == ["dead letter"]


def test_by_priority_the_place_of_its_level_counts(office: Office) -> None:
    office.publish("t", b"low", b"high", priorities=[0, 9])
    consumer = office.subscribe("anna", "t", order="priority")

    office.broker.take(consumer, office.now_s, 1)

    assert delivery(office, 1).state == "in flight"
    assert delivery(office, 0).state == "not yet"


def test_a_long_search_for_letters_says_that_it_was_cut(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.publish("t", b"0", b"1")
    consumer = office.subscribe("anna", "t")
    office.broker.take(consumer, office.now_s, 2)
    for offset in (1, 0):
        office.broker.refuse(consumer, offset, refused("no"), office.now_s, final=True)
    office.commit()
    monkeypatch.setattr(desk_events, "Budget", lambda: Budget(events=1))

    detail = show(office, 0)

    assert detail.letters_cut
    assert detail.deliveries[0].state == "settled"


def test_many_subscriptions_are_told_in_part(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_events, "MAX_DELIVERIES", 2)
    office.publish("t", b"0")
    for name in "abc":
        office.subscribe(name, "t")

    detail = show(office, 0)

    assert [row.subscriber for row in detail.deliveries] == ["a", "b"]
    assert detail.more_deliveries


def test_what_is_not_there_is_unknown(office: Office) -> None:
    office.publish("t", b"0")

    with pytest.raises(UnknownEvent):
        show(office, 1)
    with pytest.raises(UnknownTopic):
        show(office, 0, "absent")
    with pytest.raises(InvalidArgument):
        show(office, -1)


def test_events_of_an_id_are_found_wherever_they_are(office: Office) -> None:
    office.broker.publish("t", Columns([b"a", b"b"], 5, ids=["x", "y"]))
    office.broker.publish("u", Columns([b"c"], 5, ids=["x"], parents=["y"]))
    office.commit()

    found = find(office, id="x")

    places = [(one.topic, one.offset, one.payload) for one in found.events]
    assert sorted(places) == [("t", 0, b"a"), ("u", 0, b"c")]
    assert (found.next, found.cut) == (None, False)


def test_an_id_that_was_made_up_is_found(office: Office) -> None:
    office.publish("t", *(b"%d" % n for n in range(5)))
    (batch,) = office.broker.log.read("t", 0)

    found = find(office, id=batch.ids()[3])

    assert [one.offset for one in found.events] == [3]


def test_more_than_the_limit_is_cut(office: Office) -> None:
    office.broker.publish("t", Columns([b"a"] * 5, 5, ids=["x"] * 5))
    office.commit()

    found = find(office, id="x", limit=2)

    assert (len(found.events), found.cut) == (2, True)


def test_a_question_goes_on_where_it_was(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.chains import chains

    monkeypatch.setattr(chains, "STEP_EFFORT", 1)
    office.broker.publish("t", Columns([b"a"] * 300, 5, ids=["x"] * 300))
    office.commit()

    found = find(office, id="x", limit=1000)
    offsets, steps = [one.offset for one in found.events], 1
    while found.next is not None:
        found = find(office, next=found.next)
        offsets += [one.offset for one in found.events]
        steps += 1

    assert sorted(offsets) == list(range(300))
    assert steps > 1


@pytest.mark.parametrize("arguments", [{}, {"id": "x", "next": 1}, {"next": 99}])
def test_a_question_that_makes_no_sense_is_refused(
    office: Office, arguments: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArgument):
        find(office, **arguments)


def test_an_id_that_nobody_has_is_unknown(office: Office) -> None:
    with pytest.raises(UnknownEvent):
        find(office, id="nobody")


def test_the_desk_has_its_verbs(office: Office) -> None:
    assert isinstance(office.desk.events, EventDesk)
