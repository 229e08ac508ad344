from __future__ import annotations

import pytest

from penstock.model.moment import is_due


@pytest.mark.parametrize(
    ("now_s", "due"),
    [(99.0, False), (90.0, False), (100.0, True), (5000.0, True), (89.9, True)],
)
def test_a_moment_is_due_when_it_comes_or_the_clock_was_set_back(
    now_s: float, *, due: bool
) -> None:
    assert is_due(100.0, 10.0, now_s) == due
