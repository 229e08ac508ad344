from __future__ import annotations

import logging

import pytest

from penstock.broker import desk_letters
from penstock.broker.desk_letters import Filter
from penstock.errors import UnknownDeadLetter
from tests.unit.broker.office import Office


def letters(office: Office, **arguments: object) -> list[int]:
    page = office.desk.letters.search(**arguments)  # type: ignore[arg-type]
    return [one.number for one in page.letters]


@pytest.fixture
def three(office: Office) -> Office:
    """Letters 0 to 2: events 0 and 1 of ``t`` for ``me``, and raw input."""
    office.publish("t", b"zero", b"one", priorities=[0, 4])
    office.bury(office.subscribe("me", "t", tries=1))
    office.raw_letter(b"x" * 300, "not JSON")
    return office


def test_a_letter_knows_all_about_an_event(three: Office) -> None:
    letter = three.desk.letters.show(number=1)

    assert (letter.topic, letter.offset, letter.subscriber) == ("t", 1, "me")
    assert (letter.gateway, letter.reason, letter.tries) == ("delivery", "broken", 1)
    assert (letter.status, letter.errors) == ("open", ["broken"])
    assert letter.event is not None
    assert (letter.event.payload, letter.event.priority) == (b"one", 4)
    assert letter.event.id == letter.id
    assert letter.at_ms == int(three.now_s * 1000)


def test_a_letter_of_raw_input_has_it_whole_and_the_list_its_beginning(
    three: Office,
) -> None:
    letter = three.desk.letters.show(number=2)
    row = three.desk.letters.search().letters[2]

    assert (letter.raw, letter.event) == (b"x" * 300, None)
    assert (row.raw, row.raw_bytes, row.topic) == (b"x" * 200, 300, None)


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        (Filter(), [0, 1, 2]),
        (Filter(subscriber="me"), [0, 1]),
        (Filter(topic="t"), [0, 1]),
        (Filter(gateway="json"), [2]),
        (Filter(reason="json"), [2]),
        (Filter(reason="BROK", subscriber="me"), [0, 1]),
        (Filter(subscriber="you"), []),
    ],
)
def test_a_filter_takes_what_fits(
    three: Office, filter: Filter, found: list[int]
) -> None:
    assert letters(three, filter=filter) == found


@pytest.mark.parametrize(
    ("gateway", "found"),
    [
        ("json", [0, 1, 2]),
        ("json consumer", [1]),
        ("json publisher", [2]),
        ("maze", [3]),
        ("consumer", []),
        ("js", []),
        ("", []),
    ],
)
def test_a_gateway_is_named_whole_or_by_its_first_word(
    office: Office, gateway: str, found: list[int]
) -> None:
    for name in ("json", "json consumer", "json publisher", "maze"):
        office.broker.dead_letter(gateway=name, reason="odd", raw=b"x")
    office.commit()

    assert letters(office, filter=Filter(gateway=gateway)) == found


def test_a_page_says_where_to_go_on(three: Office) -> None:
    first = three.desk.letters.search(limit=2)

    assert [one.number for one in first.letters] == [0, 1]
    assert first.next == 2
    assert letters(three, start=2) == [2]
    assert three.desk.letters.search(start=2).next is None


def test_a_search_looks_at_so_many_letters_at_a_time(
    three: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_letters, "MAX_SCAN", 2)

    page = three.desk.letters.search(filter=Filter(gateway="json"))

    assert (page.letters, page.next) == ([], 2)


def test_without_letters_there_are_none(office: Office) -> None:
    assert letters(office) == []
    assert office.desk.letters.republish().results == []
    with pytest.raises(UnknownDeadLetter, match="dead letter 0 does not exist"):
        office.desk.letters.show(number=0)


def test_an_unknown_number_is_refused(three: Office) -> None:
    for verb in ("show", "republish", "drop"):
        with pytest.raises(UnknownDeadLetter, match="dead letter 3 does not exist"):
            three.desk.ask(
                f"dead-letters.{verb}",
                {"number": 3} if verb == "show" else {"numbers": [3]},
            )


# Sending again


def test_an_event_goes_again_to_the_subscription_that_failed_only(
    three: Office,
) -> None:
    other = three.subscribe("other", "t")
    three.take(other)

    (done,) = three.desk.letters.republish(numbers=[1]).results
    three.commit()

    assert (done.done, done.text) == (True, "republished")
    me = three.broker.subscription("me", "t").consumers[0]
    assert three.take(me) == [(1, 1)]
    assert three.take(other) == []
    assert letters(three) == [0, 2]


def test_the_subscriber_that_failed_is_woken(three: Office) -> None:
    three.broker.awake.clear()

    three.desk.letters.republish(numbers=[0])

    me = three.broker.subscription("me", "t").consumers[0]
    assert list(three.broker.awake) == [me.outlet]


def test_sending_again_twice_sends_once(three: Office) -> None:
    three.desk.letters.republish(numbers=[1])
    me = three.broker.subscription("me", "t").consumers[0]
    three.take(me)
    me.subscription.settle(1)

    (again,) = three.desk.letters.republish(numbers=[1]).results

    assert (again.done, again.text) == (True, "republished before")
    assert three.take(me) == []


def test_one_number_given_twice_is_sent_once(three: Office) -> None:
    results = three.desk.letters.republish(numbers=[0, 0]).results

    assert [one.text for one in results] == ["republished", "republished before"]


def test_it_is_remembered_over_a_crash(three: Office) -> None:
    three.desk.letters.republish(numbers=[0, 1])
    three.commit()

    three.restart()

    assert letters(three) == [2]
    me = three.subscribe("me", "t", tries=1)
    assert sorted(three.take(me)) == [(0, 1), (1, 1)]
    texts = [one.text for one in three.desk.letters.republish(numbers=[0, 1]).results]
    assert all(text.endswith("before") for text in texts)


def test_a_crash_before_the_commit_leaves_letter_and_subscription_as_they_were(
    three: Office,
) -> None:
    three.desk.letters.republish(numbers=[0])

    three.restart()

    assert letters(three) == [0, 1, 2]
    assert three.take(three.subscribe("me", "t", tries=1)) == []


def test_after_a_failed_write_it_can_be_done_again_and_sends_once(
    three: Office,
) -> None:
    three.desk.letters.republish(numbers=[0])
    three.fail_commit()
    assert letters(three) == [0, 1, 2]

    three.desk.letters.republish(numbers=[0])
    three.commit()

    me = three.broker.subscription("me", "t").consumers[0]
    assert three.take(me) == [(0, 1)]
    assert letters(three) == [1, 2]


def test_a_filter_sends_all_events_it_takes_and_no_raw_input(three: Office) -> None:
    results = three.desk.letters.republish(filter=Filter()).results
    three.commit()

    assert [(one.number, one.done) for one in results] == [(0, True), (1, True)]
    assert letters(three) == [2]


def test_raw_input_has_nowhere_to_go(three: Office) -> None:
    (result,) = three.desk.letters.republish(numbers=[2]).results

    assert (result.done, result.text) == (
        False,
        "is raw input, which has no subscription to go to",
    )
    assert letters(three) == [0, 1, 2]


def test_a_subscription_that_is_gone_gets_nothing(three: Office) -> None:
    three.desk.forget(subscriber="me", topic="t")

    (result,) = three.desk.letters.republish(numbers=[0]).results

    assert not result.done
    assert result.text == "me has no subscription to t any more"


def test_an_event_that_is_gone_is_not_sent(three: Office) -> None:
    three.broker.log.roll("t")
    three.broker.log.trim("t", 2)
    three.broker.pages.forget("t")

    (result,) = three.desk.letters.republish(numbers=[1]).results

    assert (result.done, result.text) == (False, "event 1 of t is gone")
    assert three.desk.letters.show(number=1).event is None


def test_an_event_of_a_new_topic_of_that_name_is_another_one(three: Office) -> None:
    three.desk.delete_topic(name="t")
    three.clock.advance(1)
    three.publish("t", b"new", b"newer")
    three.subscribe("me", "t")

    (result,) = three.desk.letters.republish(numbers=[0]).results

    assert not result.done
    assert three.desk.letters.show(number=0).event is None


def test_an_event_of_a_deleted_topic_is_gone(three: Office) -> None:
    three.desk.delete_topic(name="t")

    assert three.desk.letters.show(number=0).event is None


def test_what_a_subscription_has_still_in_front_of_it_comes_once(
    three: Office,
) -> None:
    three.desk.seek(subscriber="me", topic="t", start="earliest")

    (result,) = three.desk.letters.republish(numbers=[0]).results

    assert result.done
    me = three.broker.subscription("me", "t").consumers[0]
    assert three.take(me) == [(0, 1), (1, 1)]
    assert three.take(me) == []


# Dropping


def test_dropped_letters_are_closed_and_listed_if_asked_for(
    three: Office, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        results = three.desk.letters.drop(numbers=[2, 1], reason="old").results
    three.commit()

    assert [(one.number, one.text) for one in results] == [
        (2, "dropped"),
        (1, "dropped"),
    ]
    assert letters(three) == [0]
    statuses = [one.status for one in three.desk.letters.search(closed=True).letters]
    assert statuses == ["open", "dropped", "dropped"]
    assert caplog.messages == ["2 dead letters dropped: old"]


def test_dropping_twice_is_once(three: Office) -> None:
    three.desk.letters.drop(numbers=[1])

    (again,) = three.desk.letters.drop(numbers=[1]).results

    assert (again.done, again.text) == (True, "dropped before")


def test_a_dropped_letter_is_not_sent_again(three: Office) -> None:
    three.desk.letters.drop(numbers=[1])

    (result,) = three.desk.letters.republish(numbers=[1]).results

    assert (result.done, result.text) == (False, "dropped before")


def test_dropping_by_filter_takes_raw_input_too(three: Office) -> None:
    three.desk.letters.drop(filter=Filter())
    three.commit()

    assert letters(three) == []
    assert letters(three, closed=True) == [0, 1, 2]
