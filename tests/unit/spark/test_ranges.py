from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.ranges import TaskRange, share, split
from penstock.table.extent import Extent

HEAVY = {"t": Extent(start=0, end=100, bytes=100 << 20)}


@given(
    st.dictionaries(
        st.sampled_from("abc"), st.tuples(st.integers(0, 99), st.integers(0, 99))
    ),
    st.none() | st.integers(1, 20),
    st.none() | st.integers(1, 20),
)
def test_ranges_are_the_spans(
    spans: dict[str, tuple[int, int]], at_least: int | None, most: int | None
) -> None:
    ranges = split(spans, {}, at_least=at_least, most_records=most)

    offsets = [(one.topic, n) for one in ranges for n in range(one.start, one.end)]
    assert offsets == [(t, n) for t in sorted(spans) for n in range(*spans[t])]
    assert all(one.start < one.end for one in ranges)
    assert len(ranges) >= min(at_least or 0, len(offsets))
    assert all(one.end - one.start <= (most or 100) for one in ranges)


def test_what_is_small_is_one_task() -> None:
    assert split({"t": (0, 1000)}, {}, tasks=8) == [TaskRange("t", 0, 1000)]


def test_ranges_know_the_number_of_their_topic() -> None:
    extents = {"t": Extent(start=0, end=9, number=7)}

    assert split({"t": (0, 4)}, extents, at_least=2) == [
        TaskRange("t", 0, 2, number=7),
        TaskRange("t", 2, 4, number=7),
    ]


def test_what_is_large_is_a_task_for_each_processor() -> None:
    assert split({"t": (0, 100)}, HEAVY, tasks=4) == [
        TaskRange("t", 0, 25),
        TaskRange("t", 25, 50),
        TaskRange("t", 50, 75),
        TaskRange("t", 75, 100),
    ]


def test_heavy_topics_are_cut_finer() -> None:
    extents = HEAVY | {"u": Extent(start=0, end=100, bytes=1000)}

    ranges = split({"t": (0, 100), "u": (0, 100)}, extents, at_least=4)

    assert [one.topic for one in ranges] == ["t", "t", "t", "t", "u"]


def test_nothing_is_no_task() -> None:
    assert split({"t": (5, 5), "u": (9, 3)}, {}) == []


def test_a_range_travels() -> None:
    assert pickle.loads(pickle.dumps(TaskRange("t", 1, 2))) == TaskRange("t", 1, 2)


@pytest.mark.parametrize(
    ("lags", "limit", "taken"),
    [
        ({"a": 3, "b": 4}, 10, {"a": 3, "b": 4}),
        ({"a": 10, "b": 30}, 8, {"a": 2, "b": 6}),
        ({"a": 1, "b": 1, "c": 1}, 1, {"a": 1, "b": 0, "c": 0}),
        ({"a": 0, "b": 100}, 7, {"a": 0, "b": 7}),
        ({"a": 1000, "b": 1}, 10, {"a": 9, "b": 1}),
        ({"a": 10**6, "b": 1, "c": 0}, 10, {"a": 9, "b": 1, "c": 0}),
        ({"a": 10**6, "b": 2, "c": 1}, 2, {"a": 2, "b": 0, "c": 0}),
        ({}, 10, {}),
    ],
)
def test_a_limit_is_shared_by_lag(
    lags: dict[str, int], limit: int, taken: dict[str, int]
) -> None:
    assert share(lags, limit) == taken


@given(st.dictionaries(st.text(), st.integers(0, 10**12)), st.integers(1, 10**6))
def test_a_limit_is_used_up_and_not_passed(lags: dict[str, int], limit: int) -> None:
    taken = share(lags, limit)

    assert sum(taken.values()) == min(limit, sum(lags.values()))
    assert all(0 <= taken[topic] <= lags[topic] for topic in lags)
    waiting = [topic for topic in lags if lags[topic]]
    assert all(taken[topic] for topic in waiting) or limit < len(waiting)
