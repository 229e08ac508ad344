from __future__ import annotations

import pytest

from penstock.errors import TooManyAttempts
from penstock.http import attempts
from penstock.http.attempts import Attempts


def test_so_many_failures_a_minute_are_let_pass() -> None:
    some = Attempts(2)
    some.failed("here", 0.0)
    some.check("here", 1.0)
    some.failed("here", 10.0)

    with pytest.raises(TooManyAttempts) as raised:
        some.check("here", 20.0)

    assert raised.value.wait_s == 40.0
    some.check("elsewhere", 20.0)
    some.check("here", 60.0)


def test_an_address_that_waited_begins_anew() -> None:
    some = Attempts(1)
    some.failed("here", 0.0)

    some.check("here", 100.0)
    some.failed("here", 100.0)

    with pytest.raises(TooManyAttempts):
        some.check("here", 100.0)


def test_addresses_are_not_remembered_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "MAX_ADDRESSES", 2)
    some = Attempts(1)

    for address in ("a", "b", "c"):
        some.failed(address, 0.0)

    some.check("a", 0.0)
    for address in ("b", "c"):
        with pytest.raises(TooManyAttempts):
            some.check(address, 0.0)
