from __future__ import annotations

import pytest

from penstock.delivery import letters
from penstock.delivery.letters import DeadLetter
from penstock.desk import letter_book, scan
from penstock.desk.letter_book import LetterBook, LetterCount
from penstock.desk.views.letters import Filter
from penstock.errors import UnknownDeadLetter
from tests.unit.desk.letter_scene import lose, three
from tests.unit.desk.office import Office


@pytest.fixture
def book(office: Office) -> LetterBook:
    return LetterBook(three(office).broker)


def test_without_letters_there_are_none(office: Office) -> None:
    book = LetterBook(office.broker)

    assert book.end == 0
    assert book.scan(Filter(), 0, None, 10) == ([], None)
    with pytest.raises(UnknownDeadLetter, match="dead letter 0 does not exist"):
        book.head(0)


def test_a_letter_is_read_by_its_number(book: LetterBook) -> None:
    assert (book.end, book.head(1).offset, book.letter(1).offset) == (3, 1, 1)
    assert book.head(2).raw == b"x" * 300
    with pytest.raises(UnknownDeadLetter, match="dead letter 3 does not exist"):
        book.letter(3)


def test_a_scan_says_where_to_go_on(book: LetterBook) -> None:
    first = book.scan(Filter(), 0, None, 2)
    second = book.scan(Filter(), 2, None, 2)

    assert ([number for number, _ in first.found], first.next) == ([0, 1], 2)
    assert ([number for number, _ in second.found], second.next) == ([2], None)
    assert book.scan(Filter(), 0, 1, 10).next is None
    assert len(book.scan(Filter(), 0, 1, 10).found) == 1


@pytest.mark.parametrize("limit", ["MAX_SCAN", "MAX_SCAN_BYTES"])
def test_a_scan_looks_at_so_much_at_a_time(
    book: LetterBook, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(scan, limit, 1)

    page = book.scan(Filter(gateway="json"), 0, None, 10)

    assert page == ([], 1)


def test_an_event_comes_from_its_topic_as_long_as_that_has_it(
    office: Office, book: LetterBook
) -> None:
    before = book.event(1, book.head(1))
    lose(office, "t", 2)
    after = book.event(1, book.head(1))

    assert before is not None
    assert after is not None
    assert (before.source, after.source) == ("log", "letter")
    assert before.event == after.event
    assert after.event.payload == b"one"


def test_an_event_that_was_compacted_away_is_in_its_letter(
    office: Office, book: LetterBook
) -> None:
    office.publish("t", b"two")
    lose(office, "t", 2)

    located = book.event(1, book.head(1))

    assert located is not None
    assert (located.source, located.event.offset) == ("letter", 1)
    assert book.stored_priority(book.head(1)) is None


def test_a_letter_of_an_older_version_has_no_copy(
    office: Office, book: LetterBook
) -> None:
    old = DeadLetter(
        gateway="delivery", reason="no", at_ms=1, topic="t", offset=0, errors=["no"]
    )
    letters.keep(office.broker.log, old, office.broker.topic_options)
    office.commit()

    before = book.event(3, book.head(3))
    lose(office, "t", 2)

    assert before is not None
    assert before.event.payload == b"zero"
    assert book.event(3, book.head(3)) is None
    shown = office.desk.letters.show(number=3)
    assert (shown.errors, shown.kind, shown.event) == (["no"], None, None)


def test_raw_input_has_no_event(book: LetterBook) -> None:
    assert book.event(2, book.head(2)) is None


def test_an_event_of_a_deleted_topic_is_in_its_letter(
    office: Office, book: LetterBook
) -> None:
    office.desk.delete_topic(name="t")
    office.commit()

    located = book.event(0, book.head(0))

    assert located is not None
    assert (located.source, located.event.payload) == ("letter", b"zero")


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
    monkeypatch.setattr(letter_book, "LOOK_LETTERS", 2)
    buried(office, "a", 5)
    count = LetterCount(office.broker)

    looks = [count.by_topic()["a"] for _ in range(4)]

    assert looks == [2, 4, 5, 5]
    assert count.open() == 5


def test_the_newest_are_remembered_where_there_are_too_many(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_book, "MAX_KNOWN", 2)
    buried(office, "a", 2)
    buried(office, "b", 2)

    assert LetterCount(office.broker).by_topic() == {"b": 2}
