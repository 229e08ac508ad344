from __future__ import annotations

import pytest

from penstock.desk import error_log as desk_errors
from penstock.desk import scan
from penstock.desk.views.errors import ErrorFilter, ErrorPage
from penstock.errors import UnknownFailure
from tests.unit.desk.letter_scene import TRACEBACK, fail
from tests.unit.desk.office import Office


@pytest.fixture
def failing(office: Office) -> Office:
    """Failures 0 and 1 of both events of ``t``, and 2 and 3 a second later."""
    office.publish("t", b"zero", b"one")
    me = office.subscribe("me", "t", tries=5)
    fail(office, me, "ValueError", "first", TRACEBACK)
    office.clock.advance(1)
    fail(office, me, "KeyError", "second")
    return office


def found(office: Office, **arguments: object) -> list[int]:
    page = office.desk.ask("errors", arguments)
    assert isinstance(page, ErrorPage)
    return [one.number for one in page.errors]


def test_without_failures_there_are_none(office: Office) -> None:
    assert found(office) == found(office, oldest_first=True) == []
    assert office.desk.errors.groups().groups == []
    with pytest.raises(UnknownFailure):
        office.desk.errors.show(number=0)


def test_the_newest_is_first_or_the_oldest(failing: Office) -> None:
    assert found(failing) == [3, 2, 1, 0]
    assert found(failing, oldest_first=True) == [0, 1, 2, 3]


def test_every_try_is_told(failing: Office) -> None:
    row = failing.desk.errors.search(limit=1, oldest_first=True).errors[0]

    assert (row.subscriber, row.topic, row.offset, row.tries) == ("me", "t", 0, 1)
    assert (row.kind, row.message, row.duration_s) == ("ValueError", "first", 0.25)
    assert failing.desk.errors.show(number=0).traceback == TRACEBACK
    assert failing.desk.errors.show(number=3).tries == 2


@pytest.mark.parametrize(
    ("filter", "numbers"),
    [
        ({"subscriber": "me"}, [3, 2, 1, 0]),
        ({"subscriber": "you"}, []),
        ({"topic": "u"}, []),
        ({"offset": 0}, [2, 0]),
        ({"kind": "KeyError"}, [3, 2]),
        ({"id": "nobody"}, []),
    ],
)
def test_a_filter_takes_what_fits(
    failing: Office, filter: dict[str, object], numbers: list[int]
) -> None:
    assert found(failing, filter=filter) == numbers


def test_a_filter_by_id_and_time_takes_what_fits(failing: Office) -> None:
    id_ = failing.desk.errors.show(number=1).id
    now_ms = int(failing.now_s * 1000)

    assert found(failing, filter={"id": id_}) == [3, 1]
    assert found(failing, filter={"since_ms": now_ms}) == [3, 2]
    assert found(failing, filter={"until_ms": now_ms}) == [1, 0]


@pytest.mark.parametrize(
    ("oldest_first", "pages"),
    [(False, [[3, 2, 1], [0]]), (True, [[0, 1, 2], [3]])],
)
def test_a_page_says_where_to_go_on(
    failing: Office, oldest_first: bool, pages: list[list[int]]
) -> None:
    first = failing.desk.errors.search(limit=3, oldest_first=oldest_first)
    second = failing.desk.errors.search(start=first.next, oldest_first=oldest_first)

    assert [one.number for one in first.errors] == pages[0]
    assert [one.number for one in second.errors] == pages[1]
    assert second.next is None


def test_a_search_looks_at_so_much_at_a_time(
    failing: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "MAX_SCAN", 2)

    page = failing.desk.errors.search(filter=ErrorFilter(kind="ValueError"))

    assert (page.errors, page.next) == ([], 1)


def test_failures_are_counted_by_kind(failing: Office) -> None:
    values, keys = failing.desk.errors.groups().groups

    assert (values.kind, values.count, values.example) == ("ValueError", 2, 1)
    assert (keys.kind, keys.count, keys.example) == ("KeyError", 2, 3)
    assert keys.first_ms - values.first_ms == 1000
    assert (values.subscriber, values.topic) == ("me", "t")


def test_groups_come_a_page_at_a_time(
    failing: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk_errors, "MAX_GROUPED", 3)

    first = failing.desk.errors.groups()
    second = failing.desk.errors.groups(start=first.next or 0, end=first.end)

    assert [(one.kind, one.count) for one in first.groups] == [
        ("ValueError", 2),
        ("KeyError", 1),
    ]
    assert (first.next, first.end) == (3, 4)
    assert [(one.kind, one.count) for one in second.groups] == [("KeyError", 1)]
    assert second.next is None
