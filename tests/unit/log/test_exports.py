from __future__ import annotations

import pytest

import penstock.log


def test_a_name_of_the_version_before_says_what_it_is_called_now() -> None:
    with pytest.warns(DeprecationWarning, match="Outcome is called GroupOutcome"):
        old = penstock.log.Outcome

    assert old is penstock.log.GroupOutcome


def test_a_name_that_never_was_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        penstock.log.Nothing  # noqa: B018
