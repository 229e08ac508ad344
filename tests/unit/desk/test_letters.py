from __future__ import annotations

import pytest

from penstock.desk import letters as desk_letters
from penstock.desk.views.letters import Filter
from penstock.errors import UnknownDeadLetter
from penstock.model.failure import Failure
from tests.unit.desk.letter_scene import TRACEBACK, fail, letters, lose
from tests.unit.desk.letter_scene import three as three_letters
from tests.unit.desk.office import Office


@pytest.fixture
def three(office: Office) -> Office:
    return three_letters(office)


def test_a_letter_knows_all_about_an_event(three: Office) -> None:
    letter = three.desk.letters.show(number=1)

    assert (letter.topic, letter.offset, letter.subscriber) == ("t", 1, "me")
    assert (letter.gateway, letter.reason, letter.tries) == ("delivery", "broken", 1)
    assert (letter.status, letter.errors) == ("open", ["broken"])
    assert letter.event is not None
    assert (letter.event.payload, letter.event.priority) == (b"one", 4)
    assert letter.event.id == letter.id
    assert (letter.event_from, letter.amended) == ("log", False)
    assert letter.at_ms == int(three.now_s * 1000)


def test_a_letter_has_the_traceback_of_every_try(office: Office) -> None:
    office.publish("t", b"zero")
    me = office.subscribe("me", "t", tries=2)
    fail(office, me, "ValueError", "first", TRACEBACK)
    office.clock.advance(1)
    fail(office, me, "KeyError", "second")

    letter = office.desk.letters.show(number=0)

    assert (letter.kind, letter.reason) == ("KeyError", "KeyError: second")
    assert letter.errors == ["ValueError: first", "KeyError: second"]
    first, second = letter.failures
    assert (first.tries, first.kind, first.message) == (1, "ValueError", "first")
    assert (first.traceback, first.duration_s) == (TRACEBACK, 0.25)
    assert (second.tries, second.at_ms - first.at_ms) == (2, 1000)


def test_a_letter_of_raw_input_has_it_whole_and_the_list_its_beginning(
    three: Office,
) -> None:
    letter = three.desk.letters.show(number=2)
    row = three.desk.letters.search().letters[2]

    assert (letter.raw, letter.event) == (b"x" * 300, None)
    assert (row.raw, row.raw_bytes, row.topic) == (b"x" * 200, 300, None)


def test_a_letter_has_the_event_that_its_topic_has_lost(three: Office) -> None:
    lose(three, "t", 2)

    letter = three.desk.letters.show(number=1)

    assert letter.event is not None
    assert (letter.event.payload, letter.event_from) == (b"one", "letter")


def test_an_event_of_a_new_topic_of_that_name_is_another_one(three: Office) -> None:
    three.desk.delete_topic(name="t")
    three.commit()
    three.clock.advance(1)
    three.publish("t", b"new", b"newer")

    letter = three.desk.letters.show(number=0)

    assert letter.event is not None
    assert (letter.event.payload, letter.event_from) == (b"zero", "letter")


def test_a_letter_says_who_closed_it_and_why(three: Office) -> None:
    three.desk.redrive.drop(numbers=[0], reason="old", by="anna")
    three.commit()

    letter = three.desk.letters.show(number=0)

    assert letter.status == "dropped"
    (entry,) = letter.history
    assert (entry.action, entry.by, entry.reason) == ("dropped", "anna", "old")
    assert not letter.history_cut
    assert three.desk.letters.show(number=1).history == []


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        (Filter(), [0, 1, 2]),
        (Filter(subscriber="me"), [0, 1]),
        (Filter(topic="t"), [0, 1]),
        (Filter(gateway="json"), [2]),
        (Filter(error="Refused"), [0, 1]),
        (Filter(reason="json"), [2]),
        (Filter(reason="BROK", subscriber="me"), [0, 1]),
        (Filter(subscriber="you"), []),
    ],
)
def test_a_filter_takes_what_fits(
    three: Office, filter: Filter, found: list[int]
) -> None:
    assert letters(three, filter=filter) == found


def test_a_filter_by_time_takes_what_came_then(three: Office) -> None:
    three.clock.advance(60)
    three.raw_letter()
    now_ms = int(three.now_s * 1000)

    assert letters(three, filter=Filter(since_ms=now_ms)) == [3]
    assert letters(three, filter=Filter(until_ms=now_ms)) == [0, 1, 2]


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


def test_a_status_takes_what_became_of_them(three: Office) -> None:
    three.desk.redrive.drop(numbers=[1], reason="old")
    three.desk.redrive.republish(numbers=[0])

    assert letters(three) == letters(three, status="open") == [2]
    assert letters(three, status="dropped") == [1]
    assert letters(three, status="republished") == [0]
    assert letters(three, closed=True) == [0, 1, 2]
    three.commit()
    assert letters(three, status="dropped") == [1]
    assert letters(three, status="closed") == []


def test_a_page_says_where_to_go_on(three: Office) -> None:
    first = three.desk.letters.search(limit=2)

    assert [one.number for one in first.letters] == [0, 1]
    assert first.next == 2
    assert letters(three, start=2) == [2]
    assert letters(three, end=1) == [0]
    assert three.desk.letters.search(start=2).next is None


def test_the_newest_come_first_if_they_are_asked_for(three: Office) -> None:
    search = three.desk.letters.search

    first = search(newest=True, limit=2)
    rest = search(newest=True, end=first.next, limit=2)

    assert [row.number for row in first.letters] == [2, 1]
    assert [row.number for row in rest.letters] == [0]
    assert (first.next, rest.next) == (1, None)


def test_those_that_are_not_open_any_more_are_found(three: Office) -> None:
    three.desk.redrive.drop(numbers=[1], reason="old")
    three.commit()

    done = three.desk.letters.search(status="done", newest=True)

    assert [(row.number, row.status) for row in done.letters] == [(1, "dropped")]


def test_without_letters_there_are_none(office: Office) -> None:
    assert letters(office) == []
    assert office.desk.letters.groups().groups == []
    with pytest.raises(UnknownDeadLetter, match="dead letter 0 does not exist"):
        office.desk.letters.show(number=0)


# Groups


def test_letters_that_are_alike_are_counted_together(office: Office) -> None:
    office.publish("t", b"0", b"1", b"2")
    me = office.subscribe("me", "t", tries=1)
    for offset, _ in office.take(me):
        failure = ["order 1 is odd", "order 23 is odd", "no"][offset]
        fail_one(office, offset, "ValueError", failure)
        office.clock.advance(1)
    office.raw_letter()

    page = office.desk.letters.groups()

    assert [(g.subscriber, g.pattern, g.count) for g in page.groups] == [
        ("me", "ValueError: order … is odd", 2),
        ("me", "ValueError: no", 1),
        (None, "no JSON", 1),
    ]
    first = page.groups[0]
    assert (first.first, first.example, first.topic) == (0, 1, "t")
    assert first.last_ms - first.first_ms == 1000
    assert (page.next, page.end) == (None, 4)


def test_groups_come_a_page_at_a_time_and_end_where_they_began(
    three: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_letters, "MAX_GROUPED", 2)
    first = three.desk.letters.groups()
    three.raw_letter()

    second = three.desk.letters.groups(start=2, end=first.end)

    assert (first.next, first.end) == (2, 3)
    assert [one.count for one in second.groups] == [1]
    assert second.next is None


def test_closed_letters_are_in_no_group(three: Office) -> None:
    three.desk.redrive.drop(numbers=[0, 2], reason="old")

    (group,) = three.desk.letters.groups().groups

    assert (group.count, group.first, group.example) == (1, 1, 1)


def fail_one(office: Office, offset: int, kind: str, message: str) -> None:
    me = office.broker.subscription("me", "t").consumers[0]
    office.broker.refuse(me, offset, Failure(0, 0, kind, message), office.now_s)
    office.commit()
