from __future__ import annotations

import pytest

from penstock.desk import audit_trail, scan
from penstock.desk.audit_trail import TOPIC, edit_of
from penstock.desk.views.audit import AuditEntry, AuditFilter, AuditPage
from tests.unit.desk.office import Office


@pytest.fixture
def trail(office: Office) -> Office:
    """Entries 0 to 2, a second apart."""
    for entry in (
        AuditEntry(at_ms=0, by="anna", action="republished", numbers=[0, 1]),
        AuditEntry(at_ms=0, by="anna", action="dropped", numbers=[2], subscriber="me"),
        AuditEntry(at_ms=0, by="bert", action="dropped", numbers=[3], topic="t"),
    ):
        at_ms = int(office.now_s * 1000)
        fields = {name: getattr(entry, name) for name in entry.__struct_fields__}
        office.desk.audit.note([AuditEntry(**{**fields, "at_ms": at_ms})])
        office.commit()
        office.clock.advance(1)
    return office


def entries(office: Office, **filter: object) -> list[int]:
    page = office.desk.ask("dead-letters.audit", {"filter": filter})
    assert isinstance(page, AuditPage)
    return [one.entry for one in page.entries]


def test_without_a_trail_nothing_was_done(office: Office) -> None:
    assert entries(office) == []
    assert office.desk.audit.closing(0, 0) == (None, True)


def test_the_newest_is_first(trail: Office) -> None:
    assert entries(trail) == [2, 1, 0]


@pytest.mark.parametrize(
    ("filter", "found"),
    [
        ({"by": "anna"}, [1, 0]),
        ({"action": "dropped"}, [2, 1]),
        ({"subscriber": "me"}, [1]),
        ({"topic": "t"}, [2]),
        ({"number": 1}, [0]),
        ({"number": 9}, []),
    ],
)
def test_a_filter_takes_what_fits(
    trail: Office, filter: dict[str, object], found: list[int]
) -> None:
    assert entries(trail, **filter) == found


def test_a_filter_by_time_takes_what_was_done_then(trail: Office) -> None:
    last_ms = int(trail.now_s * 1000) - 1000

    assert entries(trail, since_ms=last_ms) == [2]
    assert entries(trail, until_ms=last_ms) == [1, 0]
    assert entries(trail, since_ms=last_ms + 1) == []


def test_a_page_says_where_to_go_on(trail: Office) -> None:
    first = trail.desk.audit.search(limit=2)
    second = trail.desk.audit.search(before=first.next)

    assert ([one.entry for one in first.entries], first.next) == ([2, 1], 1)
    assert ([one.entry for one in second.entries], second.next) == ([0], None)


def test_a_search_looks_at_so_much_at_a_time(
    trail: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "MAX_SCAN", 1)
    page = trail.desk.audit.search(filter=AuditFilter(number=1))

    assert (page.entries, page.next) == ([], 2)
    assert trail.desk.audit.closing(3, 0) == (None, False)


def test_an_answer_has_so_many_bytes(
    trail: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_trail, "MAX_ANSWER_BYTES", 1)

    page = trail.desk.audit.search()

    assert ([one.entry for one in page.entries], page.next) == ([2], 2)


def test_the_entry_that_closed_a_letter_is_found(trail: Office) -> None:
    entry, searched = trail.desk.audit.closing(1, 0)

    assert entry is not None
    assert (entry.entry, searched) == (0, True)
    assert trail.desk.audit.closing(1, int(trail.now_s * 1000)) == (None, True)


def test_the_trail_is_kept_whatever_is_the_rule_for_topics(office: Office) -> None:
    office.desk.audit.note(
        [AuditEntry(at_ms=1, by="anna", action="dropped", numbers=[0])]
    )

    options = office.broker.log.topic(TOPIC).options
    assert (options.durability, options.compact) == ("sync", False)
    assert (options.retention_age_s, options.retention_bytes) == (None, None)


def test_the_payloads_of_an_edit_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_trail, "MAX_PAYLOAD_BYTES", 3)

    entry = edit_of(
        7,
        subscriber="me",
        topic="t",
        at_ms=1,
        by="anna",
        reason="typo",
        old=b"old",
        new=b"newer",
    )

    assert (entry.old, entry.new, entry.cut) == (b"old", b"new", True)
