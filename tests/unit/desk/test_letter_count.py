from __future__ import annotations

import pytest

from penstock.desk import letter_count
from penstock.desk.letter_count import LetterCount
from tests.unit.desk.office import Office


def buried(office: Office, topic: str, count: int) -> None:
    office.publish(topic, *[b"x"] * count)
    office.bury(office.subscribe(f"of-{topic}", topic, tries=1))


def test_letters_are_counted_by_topic(office: Office) -> None:
    count = LetterCount(office.broker)
    assert (count.open(), count.by_topic()) == (0, {})

    buried(office, "a", 2)
    buried(office, "b", 1)
    office.raw_letter()  # of no topic

    assert count.open() == 4
    assert count.by_topic() == {"a": 2, "b": 1}


def test_what_is_closed_counts_no_more(office: Office) -> None:
    buried(office, "a", 3)
    count = LetterCount(office.broker)
    assert count.by_topic() == {"a": 3}

    office.broker.letters.close([1], "dropped")
    assert (count.open(), count.by_topic()) == (2, {"a": 2})
    office.commit()
    office.broker.letters.close([0, 2], "dropped")
    office.commit()

    assert (count.open(), count.by_topic()) == (0, {})


def test_a_closing_that_failed_opens_them_again(office: Office) -> None:
    buried(office, "a", 2)
    count = LetterCount(office.broker)
    office.broker.letters.close([0], "dropped")
    assert count.open() == 1

    office.fail_commit()

    assert count.open() == 2


def test_one_look_reads_so_many_and_the_next_goes_on(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_count, "LOOK_LETTERS", 2)
    buried(office, "a", 5)
    count = LetterCount(office.broker)

    looks = [count.by_topic()["a"] for _ in range(4)]

    assert looks == [2, 4, 5, 5]
    assert count.open() == 5


def test_the_newest_are_remembered_where_there_are_too_many(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_count, "MAX_KNOWN", 2)
    buried(office, "a", 2)
    buried(office, "b", 2)

    assert LetterCount(office.broker).by_topic() == {"b": 2}
