"""What a condition leaves, held against looking at every number."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sql.scanning import bounds

SCHEMA = pa.schema([("offset", pa.int64()), ("key", pa.string())])
MOST = 64
offset, key = pc.field("offset"), pc.field("key")


def left(condition: ds.Expression, lowest: int = 0, behind: int = MOST) -> object:
    return bounds(condition, SCHEMA, "offset", lowest, behind, pa.scalar)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (offset >= 10, (10, 64)),
        (offset < 10, (0, 10)),
        ((offset > 10) & (offset <= 20), (11, 21)),
        (offset == 63, (63, 64)),
        (offset.isin([5, 40]), (5, 41)),
        ((offset < 3) | (offset > 60), (0, 64)),
        (~(offset < 10), (10, 64)),
        (offset > 100, (0, 0)),
        ((offset == 7) & (key == "k"), (7, 8)),
        ((offset == 7) | (key == "k"), (0, 64)),
        (key == "k", (0, 64)),
    ],
)
def test_bounds_are_those_of_the_condition(
    condition: ds.Expression, found: tuple[int, int]
) -> None:
    assert left(condition) == found


def test_of_nothing_nothing_is_left() -> None:
    assert left(offset >= 0, 5, 5) == (5, 5)


def test_numbers_of_64_bits_are_no_more_work() -> None:
    assert left(offset == 1 << 62, 0, (1 << 63) - 1) == (1 << 62, (1 << 62) + 1)


numbers = st.integers(-3, MOST + 3)
plain = st.builds(
    lambda n, how: how(n),
    numbers,
    st.sampled_from(
        [
            lambda n: offset < n,
            lambda n: offset <= n,
            lambda n: offset > n,
            lambda n: offset >= n,
            lambda n: offset == n,
            lambda n: offset != n,
            lambda n: key == str(n),
        ]
    ),
)
conditions = st.recursive(
    plain,
    lambda some: (
        st.builds(lambda a, b: a & b, some, some)
        | st.builds(lambda a, b: a | b, some, some)
        | st.builds(lambda a: ~a, some)
    ),
    max_leaves=6,
)


@pytest.mark.slow
@given(conditions)
def test_nothing_that_fulfils_a_condition_is_left_out(condition: ds.Expression) -> None:
    rows = pa.table({"offset": range(MOST), "key": map(str, range(MOST))}, SCHEMA)
    wanted = rows.filter(condition)["offset"].to_pylist()

    start, end = bounds(condition, SCHEMA, "offset", 0, MOST, pa.scalar)

    assert all(start <= one < end for one in wanted)
