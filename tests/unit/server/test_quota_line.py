from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.access.quota import NAMES, NONE, Quota
from penstock.server import quota_line

LIMITS = st.dictionaries(st.sampled_from(NAMES), st.integers(1, 1 << 60))
ALL = Quota(
    connections=10,
    topics=100,
    events_per_s=1000,
    bytes_per_s=1 << 20,
    stored_bytes=10 << 30,
)


def test_a_line_says_all_limits() -> None:
    line = (
        "anna has connections=10 topics=100 events_per_s=1000 "
        "bytes_per_s=1MiB stored_bytes=10GiB"
    )

    assert quota_line.is_quota(line)
    assert quota_line.parse(line) == ("anna", ALL)
    assert quota_line.rendered("anna", ALL) == line


@given(LIMITS)
def test_what_is_rendered_is_parsed(limits: dict[str, int]) -> None:
    quota = Quota(**limits)
    line = quota_line.rendered("anna", quota)

    if quota != NONE:
        assert quota_line.parse(line) == ("anna", quota)


@pytest.mark.parametrize(
    "line", ["", "has", "anna may publish has", "anna:scrypt$ has x", "# anna has x=1"]
)
def test_other_lines_are_none(line: str) -> None:
    assert not quota_line.is_quota(line) or line.startswith(("#", "anna:"))


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("", "after has comes connections"),
        ("tropics=1", "tropics is no quota"),
        ("topics", "topics is '': must be a whole number"),
        ("topics=1MiB", "topics is '1MiB': must be a whole number"),
        ("stored_bytes=1MB", "must be a size like 64KiB"),
        ("topics=1 topics=2", "topics is there twice"),
        ("connections=0", "connections is 0"),
        ("topics=-1", "topics is -1"),
    ],
)
def test_what_makes_no_sense_is_said(said: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        quota_line.parse(f"anna has {said}")
