from __future__ import annotations

import logging

import pytest
from msgspec.msgpack import encode

from penstock.desk import redrive
from penstock.desk.views.letters import Filter
from penstock.errors import (
    Backlogged,
    InvalidArgument,
    InvalidBatch,
    InvalidPayload,
    UnknownDeadLetter,
)
from tests.unit.desk.letter_scene import consumer_of, letters, lose, payloads
from tests.unit.desk.letter_scene import three as three_letters
from tests.unit.desk.office import Office


@pytest.fixture
def three(office: Office) -> Office:
    return three_letters(office)


def test_an_unknown_number_is_refused(three: Office) -> None:
    asked: dict[str, dict[str, object]] = {
        "republish": {"numbers": [3]},
        "drop": {"numbers": [3], "reason": "old"},
        "edit": {"number": 3, "payload": b""},
    }
    for verb, arguments in asked.items():
        with pytest.raises(UnknownDeadLetter, match="dead letter 3 does not exist"):
            three.desk.ask(f"dead-letters.{verb}", arguments)


# Sending again


def test_an_event_goes_again_to_the_subscription_that_failed_only(
    three: Office,
) -> None:
    other = three.subscribe("other", "t")
    three.take(other)

    (done,) = three.desk.redrive.republish(numbers=[1]).results
    three.commit()

    assert (done.done, done.text) == (True, "republished")
    me = consumer_of(three)
    assert three.take(me) == [(1, 1)]
    assert three.take(other) == []
    assert letters(three) == [0, 2]


def test_the_subscriber_that_failed_is_woken(three: Office) -> None:
    three.broker.awake.clear()

    three.desk.redrive.republish(numbers=[0])
    three.commit()

    me = consumer_of(three)
    assert list(three.broker.awake) == [me.outlet]


def test_nothing_is_sent_before_it_is_stored(three: Office) -> None:
    three.desk.redrive.republish(numbers=[0])
    three.desk.redrive.edit(number=1, payload=b"better")
    me = consumer_of(three)
    three.subscribe("me", "t", tries=2)  # which lines up what is to be sent again

    assert three.take(me) == []
    three.commit()
    assert len(three.broker.take(me, three.now_s, 10)) == 2


def test_what_a_failed_write_had_sent_is_not_sent(three: Office) -> None:
    three.desk.redrive.republish(numbers=[0])
    three.desk.redrive.edit(number=1, payload=b"better")
    three.fail_commit()
    three.commit()

    me = consumer_of(three)
    assert three.take(me) == []
    assert not me.subscription.amended
    assert three.desk.audit.search().entries == []
    three.restart()
    assert three.take(three.subscribe("me", "t", tries=1)) == []
    assert letters(three) == [0, 1, 2]


def test_a_seek_meanwhile_makes_nothing_come_twice(three: Office) -> None:
    three.desk.redrive.republish(numbers=[0])
    three.broker.seek("me", "t", "earliest")
    three.commit()

    offsets = [offset for offset, _ in three.take(consumer_of(three))]
    assert offsets == sorted(set(offsets))


def test_sending_again_twice_sends_once(three: Office) -> None:
    three.desk.redrive.republish(numbers=[1])
    three.commit()
    me = consumer_of(three)
    three.take(me)
    me.subscription.settle(1)

    (again,) = three.desk.redrive.republish(numbers=[1]).results

    assert (again.done, again.text) == (True, "republished before")
    assert three.take(me) == []


def test_what_was_dropped_is_never_said_to_be_sent(three: Office) -> None:
    three.desk.redrive.drop(numbers=[0], reason="old")
    three.commit()
    assert three.broker.letters.floor == 1

    (dropped,) = three.desk.redrive.republish(numbers=[0]).results
    assert (dropped.done, dropped.text) == (False, "dropped before")

    three.broker.letters.restore(encode([2, {}]))  # of a version that forgot
    (result,) = three.desk.redrive.republish(numbers=[0]).results
    text = "republished or dropped before, see the audit trail"
    assert (result.done, result.text) == (False, text)


def test_it_is_remembered_over_a_crash(three: Office) -> None:
    three.desk.redrive.republish(numbers=[0, 1])
    three.commit()

    three.restart()

    assert letters(three) == [2]
    me = three.subscribe("me", "t", tries=1)
    assert sorted(three.take(me)) == [(0, 1), (1, 1)]
    texts = [one.text for one in three.desk.redrive.republish(numbers=[0, 1]).results]
    assert all(text.endswith("before") for text in texts)


def test_a_crash_before_the_commit_leaves_letter_and_subscription_as_they_were(
    three: Office,
) -> None:
    three.desk.redrive.republish(numbers=[0])

    three.restart()

    assert letters(three) == [0, 1, 2]
    assert three.take(three.subscribe("me", "t", tries=1)) == []


def test_after_a_failed_write_it_can_be_done_again_and_sends_once(
    three: Office,
) -> None:
    three.desk.redrive.republish(numbers=[0])
    three.fail_commit()
    assert letters(three) == [0, 1, 2]

    three.desk.redrive.republish(numbers=[0])
    three.commit()

    me = consumer_of(three)
    assert three.take(me) == [(0, 1)]
    assert letters(three) == [1, 2]


def test_a_filter_sends_all_events_it_takes_and_no_raw_input(three: Office) -> None:
    results = three.desk.redrive.republish(filter=Filter()).results
    three.commit()

    assert [(one.number, one.done) for one in results] == [(0, True), (1, True)]
    assert letters(three) == [2]


def test_raw_input_has_nowhere_to_go(three: Office) -> None:
    (result,) = three.desk.redrive.republish(numbers=[2]).results

    assert (result.done, result.text) == (
        False,
        "is raw input, which has no subscription to go to",
    )
    assert letters(three) == [0, 1, 2]


def test_a_subscription_that_is_gone_gets_nothing(three: Office) -> None:
    three.desk.forget(subscriber="me", topic="t")

    (result,) = three.desk.redrive.republish(numbers=[0]).results

    assert not result.done
    assert result.text == "me has no subscription to t any more"


def test_what_a_subscription_has_still_in_front_of_it_comes_once(
    three: Office,
) -> None:
    three.desk.seek(subscriber="me", topic="t", start="earliest")

    (result,) = three.desk.redrive.republish(numbers=[0]).results

    assert result.done
    me = consumer_of(three)
    assert three.take(me) == [(0, 1), (1, 1)]
    assert three.take(me) == []


def test_one_number_given_twice_is_sent_once(three: Office) -> None:
    results = three.desk.redrive.republish(numbers=[0, 0]).results

    assert [(one.number, one.text) for one in results] == [(0, "republished")]


def test_only_what_was_done_now_is_fresh(three: Office) -> None:
    first = three.desk.redrive.republish(numbers=[0]).results
    second = three.desk.redrive.republish(numbers=[0, 1, 2]).results

    assert [one.fresh for one in first] == [True]
    assert [one.fresh for one in second] == [False, True, False]


def test_letters_behind_the_end_are_left_for_the_next_time(three: Office) -> None:
    page = three.desk.redrive.republish(filter=Filter(), end=1)

    assert ([one.number for one in page.results], page.next) == ([0], None)


def test_an_event_that_its_topic_has_lost_is_sent_from_the_letter(
    three: Office,
) -> None:
    lose(three, "t", 2)

    (result,) = three.desk.redrive.republish(numbers=[1]).results
    three.commit()
    three.restart()

    assert (result.done, result.text) == (True, "republished")
    me = three.subscribe("me", "t", tries=1)
    (portion,) = three.broker.take(me, three.now_s, 10)
    assert portion.page.payloads == [b"one"]
    assert (portion.page.base, portion.page.priorities) == (1, [4])
    assert me.subscription.settle(1)


def test_an_event_that_is_nowhere_any_more_is_gone(
    three: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.desk.letter_book.LetterBook.copied", _none)
    lose(three, "t", 2)

    (result,) = three.desk.redrive.republish(numbers=[1]).results

    assert (result.done, result.text) == (False, "event 1 of t is gone")


def _none(*_: object) -> None:
    return None


def test_an_event_does_not_go_to_another_topic_of_that_name(three: Office) -> None:
    three.desk.delete_topic(name="t")
    three.commit()
    three.desk.create_topic(name="t")
    three.commit()
    three.subscribe("me", "t")

    (result,) = three.desk.redrive.republish(numbers=[1]).results

    assert not result.done
    assert result.text == "topic t is another one than it was"


def test_events_that_wait_in_memory_have_a_limit(
    three: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redrive, "MAX_AMENDED_BYTES", 1)
    lose(three, "t", 2)

    first, second = three.desk.redrive.republish(numbers=[0, 1]).results

    assert (first.done, second.done) == (True, False)
    assert second.text == "me has 0 MiB of edited events to handle first"
    assert letters(three) == [1, 2]
    edited = three.desk.redrive.edit(number=1, payload=b"x")
    assert edited.text == second.text


def test_events_that_a_subscriber_owes_have_a_limit(
    three: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redrive, "MAX_OWED", 1)
    three.desk.redrive.republish(numbers=[0])

    (result,) = three.desk.redrive.republish(numbers=[1]).results

    assert (result.done, result.text) == (False, "me has 1 events to handle first")
    assert letters(three) == [1, 2]


def test_a_dry_run_tells_what_would_become_of_each(three: Office) -> None:
    three.desk.redrive.drop(numbers=[0], reason="old")

    results = three.desk.redrive.republish(numbers=[0, 1, 2], dry_run=True).results

    assert [(one.done, one.text) for one in results] == [
        (False, "dropped before"),
        (True, "would be republished"),
        (False, "is raw input, which has no subscription to go to"),
    ]
    assert letters(three) == [1, 2]
    assert three.take(consumer_of(three)) == []


def test_what_cannot_be_noted_in_the_audit_is_not_done(
    three: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise Backlogged(2, 1)

    monkeypatch.setattr(three.desk.audit, "note", refuse)
    for verb in (
        lambda: three.desk.redrive.republish(numbers=[0]),
        lambda: three.desk.redrive.edit(number=0, payload=b""),
        lambda: three.desk.redrive.drop(numbers=[0], reason="old"),
    ):
        with pytest.raises(Backlogged):
            verb()

    assert letters(three) == [0, 1, 2]
    assert three.take(consumer_of(three)) == []


def test_it_is_in_the_audit_trail_or_it_was_not_done(three: Office) -> None:
    three.desk.redrive.republish(numbers=[0, 1], by="anna")
    three.restart()
    assert (letters(three), three.desk.audit.search().entries) == ([0, 1, 2], [])

    three.desk.redrive.republish(numbers=[0, 1], by="anna")
    three.commit()
    three.restart()

    (entry,) = three.desk.audit.search().entries
    assert (entry.action, entry.by, entry.numbers) == ("republished", "anna", [0, 1])
    assert (entry.subscriber, entry.topic) == ("me", "t")
    assert letters(three) == [2]


def test_the_audit_has_an_entry_for_each_subscription(three: Office) -> None:
    three.bury(three.subscribe("you", "t", tries=1))

    three.desk.redrive.drop(filter=Filter(), reason="old")
    three.commit()

    entries = three.desk.audit.search().entries
    assert [(one.subscriber, one.numbers) for one in entries] == [
        ("you", [3, 4]),
        (None, [2]),
        ("me", [0, 1]),
    ]


# Editing


def test_an_edited_event_goes_to_the_subscription_that_failed_only(
    three: Office,
) -> None:
    other = three.subscribe("other", "t")
    three.take(other)

    done = three.desk.redrive.edit(
        number=1, payload=b"better", by="anna", reason="typo"
    )
    three.commit()

    assert (done.done, done.fresh) == (True, True)
    assert done.text == "edited and republished"
    assert payloads(three, consumer_of(three)) == [b"better"]
    assert three.take(other) == []
    late = three.subscribe("late", "t")
    assert payloads(three, late) == [b"zero", b"one"]
    assert letters(three) == [0, 2]


def test_an_edit_is_remembered_over_a_crash_with_all_but_the_payload(
    three: Office,
) -> None:
    before = three.desk.letters.show(number=1).event
    three.desk.redrive.edit(number=1, payload=b"better")
    three.commit()
    three.restart()

    me = three.subscribe("me", "t", tries=1)
    (portion,) = three.broker.take(me, three.now_s, 10)

    assert before is not None
    assert portion.page.payloads == [b"better"]
    assert (portion.page.base, portion.page.ids) == (1, [before.id])
    assert me.subscription.settle(1)
    assert three.take(me) == []


def test_the_audit_has_both_payloads_of_an_edit(three: Office) -> None:
    three.desk.redrive.edit(number=1, payload=b"better", by="anna", reason="typo")
    three.commit()

    (entry,) = three.desk.audit.search().entries
    assert (entry.action, entry.by, entry.reason) == ("edited", "anna", "typo")
    assert (entry.old, entry.new, entry.cut) == (b"one", b"better", False)
    assert (entry.numbers, entry.subscriber, entry.topic) == ([1], "me", "t")


def test_an_edit_that_fails_again_can_be_edited_again(three: Office) -> None:
    three.desk.redrive.edit(number=1, payload=b"better")
    three.commit()
    three.bury(consumer_of(three))

    letter = three.desk.letters.show(number=3)
    done = three.desk.redrive.edit(number=3, payload=b"best")
    three.commit()

    assert letter.event is not None
    assert (letter.amended, letter.event.payload) == (True, b"better")
    assert done.done
    assert payloads(three, consumer_of(three)) == [b"best"]


def test_an_edit_that_fails_again_is_sent_again_as_it_was(three: Office) -> None:
    three.desk.redrive.edit(number=1, payload=b"better")
    three.commit()
    three.bury(consumer_of(three))

    three.desk.redrive.republish(numbers=[3])
    three.commit()

    assert payloads(three, consumer_of(three)) == [b"better"]


def test_editing_twice_sends_once(three: Office) -> None:
    three.desk.redrive.edit(number=1, payload=b"better")

    again = three.desk.redrive.edit(number=1, payload=b"best")
    three.commit()

    assert (again.done, again.text) == (False, "republished before")
    assert payloads(three, consumer_of(three)) == [b"better"]


def test_a_dry_run_of_an_edit_does_nothing(three: Office) -> None:
    done = three.desk.redrive.edit(number=1, payload=b"better", dry_run=True)

    assert (done.done, done.text) == (True, "would be edited and republished")
    assert letters(three) == [0, 1, 2]


def test_what_has_no_event_cannot_be_edited(three: Office) -> None:
    done = three.desk.redrive.edit(number=2, payload=b"better")

    assert not done.done
    assert done.text == "is raw input, which has no subscription to go to"


def test_an_event_that_is_on_its_way_is_not_edited(three: Office) -> None:
    three.desk.seek(subscriber="me", topic="t", start="earliest")
    ahead = three.desk.redrive.edit(number=1, payload=b"better")
    three.take(consumer_of(three))
    flying = three.desk.redrive.edit(number=1, payload=b"better")

    assert ahead.text == "me has not come to event 1 of t yet; it goes as it is"
    assert flying.text == "event 1 of t is on its way already; it goes as it is"
    assert letters(three) == [0, 1, 2]


def test_a_payload_that_is_too_large_is_refused(
    three: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = three.broker.log.options.max_event_bytes + 1

    with pytest.raises(InvalidBatch, match="payload size"):
        three.desk.redrive.edit(number=1, payload=bytes(size))

    assert letters(three) == [0, 1, 2]


def test_an_edit_has_to_fit_the_schema_of_the_topic(three: Office) -> None:
    schema = {"type": "object", "required": ["amount"]}
    three.desk.ask("schemas.register", {"topic": "t", "schema": schema})
    three.commit()

    with pytest.raises(InvalidPayload, match="amount"):
        three.desk.redrive.edit(number=1, payload=b'{"price":1}')

    assert letters(three) == [0, 1, 2]
    assert three.desk.redrive.edit(number=1, payload=b'{"amount":1}').done


# Dropping


def test_dropped_letters_are_closed(
    three: Office, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        page = three.desk.redrive.drop(numbers=[2, 1], reason="old", by="anna")
    three.commit()

    assert [(one.number, one.text) for one in page.results] == [
        (2, "dropped"),
        (1, "dropped"),
    ]
    assert letters(three) == [0]
    statuses = [one.status for one in three.desk.letters.search(closed=True).letters]
    assert statuses == ["open", "dropped", "dropped"]
    assert caplog.messages == ["2 dead letters dropped by anna: old"]


def test_dropping_needs_a_reason(three: Office) -> None:
    for arguments in ({"numbers": [1]}, {"numbers": [1], "reason": ""}):
        with pytest.raises(InvalidArgument, match="reason"):
            three.desk.ask("dead-letters.drop", arguments)

    assert letters(three) == [0, 1, 2]


def test_dropping_twice_is_once(three: Office) -> None:
    three.desk.redrive.drop(numbers=[1], reason="old")

    (again,) = three.desk.redrive.drop(numbers=[1], reason="old").results

    assert (again.done, again.text, again.fresh) == (True, "dropped before", False)


def test_a_dropped_letter_is_not_sent_again(three: Office) -> None:
    three.desk.redrive.drop(numbers=[1], reason="old")

    (result,) = three.desk.redrive.republish(numbers=[1]).results

    assert (result.done, result.text) == (False, "dropped before")


def test_dropping_by_filter_takes_raw_input_too(three: Office) -> None:
    three.desk.redrive.drop(filter=Filter(), reason="old")
    three.commit()

    assert letters(three) == []
    assert letters(three, closed=True) == [0, 1, 2]


def test_a_dry_run_drops_nothing(three: Office) -> None:
    page = three.desk.redrive.drop(filter=Filter(), reason="old", dry_run=True)

    assert {one.text for one in page.results} == {"would be dropped"}
    assert letters(three) == [0, 1, 2]
