from __future__ import annotations

import pytest

from penstock.schema.formats import (
    CHECKED,
    FREER,
    is_date_time,
    is_decimal,
    is_duration,
    is_local_date_time,
    is_partial_time,
    is_time,
)


def test_freer_formats_are_among_those_that_are_checked() -> None:
    assert FREER.keys() <= CHECKED


@pytest.mark.parametrize(
    "text", ["10:00:00", "23:59:60", "10:00:00.125Z", "10:00:00+02:00"]
)
def test_a_time_may_leave_out_its_offset(text: str) -> None:
    assert is_time(text)
    assert is_date_time(f"2024-02-29T{text}")


@pytest.mark.parametrize("text", ["24:00:00", "10:00", "10:00:00+2", "10:00:00Zx", ""])
def test_what_is_no_time_is_none(text: str) -> None:
    assert not is_time(text)
    assert not is_date_time(f"2024-01-01T{text}")


@pytest.mark.parametrize(
    "text", ["2023-02-29T10:00:00", "20240101T10:00:00", "2024-W01-1T10:00:00", "x"]
)
def test_what_is_no_date_and_time_is_none(text: str) -> None:
    assert not is_date_time(text)


@pytest.mark.parametrize("text", ["P1D", "PT1.5S", "-P1DT2H", "P2W", "P1Y2M3DT4H5M6S"])
def test_a_duration_may_have_fractions(text: str) -> None:
    assert is_duration(text)


@pytest.mark.parametrize("text", ["P", "PT", "1D", "P1S", "PT1", "P1DT"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert not is_duration(text)


@pytest.mark.parametrize("text", ["10:00:00", "23:59:59.5"])
def test_a_local_time_has_no_offset(text: str) -> None:
    assert is_partial_time(text)
    assert is_local_date_time(f"2024-02-29T{text}")


@pytest.mark.parametrize("text", ["10:00:00Z", "10:00:00+02:00", "10:00:00-02:00", ""])
def test_a_time_with_an_offset_is_not_local(text: str) -> None:
    assert not is_partial_time(text)
    assert not is_local_date_time(f"2024-02-29T{text}")


@pytest.mark.parametrize(
    ("text", "is_one"), [("1.50", True), ("-1E+9", True), ("much", False), ("", False)]
)
def test_a_decimal_is_what_python_reads_as_one(text: str, is_one: bool) -> None:
    assert is_decimal(text) is is_one
