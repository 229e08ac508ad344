"""The tables of docs/protocols/mqtt.md and the marks of the conformance tests agree."""

from __future__ import annotations

import re
from itertools import groupby

import pytest

from tests.conformance.page import (
    PAGE,
    Statement,
    cell,
    every_test,
    filled,
    marks,
    rows,
)

# How many numbered statements the two documents have.
COUNTS = {"5.0": 251, "3.1.1": 141}
# Ids that the documents left out.
LEFT_OUT = {("5.0", "MQTT-2.2.1-1")}
REASONS = ("not observable", "does not apply", "never sent", "the suite as a whole")

TEXT = PAGE.read_text()
ROWS = list(rows(TEXT))
MARKS = marks()


def of_clients() -> list[Statement]:
    """Statements that concern no server, as the page lists them."""
    found: list[Statement] = []
    for part in TEXT.split("\n### MQTT ")[1:]:
        listed = part.split("\nOf clients alone:")[1]
        ids = re.findall(r"MQTT-\d+\.\d+\.\d+-\d+", listed)
        found += [(part.split()[0], one) for one in ids]
    return found


def numbers(statement: str) -> tuple[str, int]:
    section, _, number = statement.removeprefix("MQTT-").rpartition("-")
    return section, int(number)


def test_every_statement_stands_on_the_page_once() -> None:
    told = [one for one, _, _ in ROWS] + of_clients()

    assert len(told) == len(set(told))
    for version, count in COUNTS.items():
        assert sum(one[0] == version for one in told) == count


def test_no_number_of_a_section_is_missing() -> None:
    told = {one for one, _, _ in ROWS} | set(of_clients()) | LEFT_OUT
    places = sorted((version, *numbers(one)) for version, one in told)

    for section, found in groupby(places, key=lambda place: place[:2]):
        count = [number for _, _, number in found]
        assert count == list(range(1, len(count) + 1)), section


def test_every_mark_names_a_statement_of_the_page() -> None:
    known = {one for one, _, _ in ROWS}

    assert sorted(set(MARKS) - known) == []


@pytest.mark.parametrize("version", COUNTS)
def test_every_row_names_its_tests_or_says_why_there_are_none(version: str) -> None:
    for one, words, last in ROWS:
        if one[0] != version:
            continue
        assert words, one
        if one in MARKS:
            assert last == cell(MARKS[one]), one
        else:
            assert last.startswith(REASONS), one


def test_every_test_has_a_name_of_its_own_and_a_mark_once() -> None:
    every = [test.name for test in every_test()]
    shown = [(one, name) for one, names in MARKS.items() for name in names]

    assert len(every) == len(set(every))
    assert len(shown) == len(set(shown))


def test_the_page_is_what_the_marks_make_of_it() -> None:
    assert filled(TEXT) == TEXT


def test_a_mark_that_moves_changes_the_page() -> None:
    changed = TEXT.replace("`test_every_ping_is_answered`", "`test_nothing`")

    assert changed != TEXT
    assert filled(changed) == TEXT
