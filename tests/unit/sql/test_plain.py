from __future__ import annotations

from datetime import UTC, datetime

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.engine import values
from penstock.sql.plain import interval, plain


@pytest.mark.parametrize(
    ("microsecond", "text"),
    [(0, ".000Z"), (123_000, ".123Z"), (123_456, ".123456Z"), (1, ".000001Z")],
)
def test_a_time_has_as_many_digits_as_it_needs(microsecond: int, text: str) -> None:
    moment = datetime(2020, 1, 1, microsecond=microsecond, tzinfo=UTC)

    assert plain([moment]) == [f"2020-01-01T00:00:00{text}"]


@pytest.mark.slow
@given(
    months=st.integers(-40, 40),
    days=st.integers(-40, 40),
    micros=st.integers(-(10**12), 10**12) | st.sampled_from([0, 500_000, -1]),
)
def test_an_interval_is_said_as_duckdb_does(
    months: int, days: int, micros: int
) -> None:
    duck = duckdb.sql(
        f"SELECT to_months({months}) + to_days({days}) + to_microseconds({micros}) AS i"
    )
    assert duck is not None
    ((text,),) = duck.select("CAST(i AS VARCHAR)").fetchall()
    column = duck.to_arrow_table().column(0).combine_chunks()

    assert interval(months, days, micros) == text
    assert [plain(one) for one in values(column)] == [text]
