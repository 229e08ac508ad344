from __future__ import annotations

import pytest

from penstock.access import attempts
from penstock.access.attempts import (
    ALL_TOGETHER,
    FEW,
    TOKENS,
    WINDOW_S,
    Attempts,
    place_of,
)
from penstock.errors import TooManyAttempts

HERE, THERE = "192.0.2.1", "192.0.2.2"


class Case:
    """Attempts of users who are there, unless it is said otherwise."""

    def __init__(self, limit: int = 4) -> None:
        self.attempts = Attempts(limit)

    def fail(
        self, user: str, address: str, now_s: float = 0.0, *, known: bool = True
    ) -> None:
        self.attempts.failed(address, user, now_s, known=known)

    def wait_s(
        self, user: str, address: str, now_s: float = 0.0, *, known: bool = True
    ) -> float:
        try:
            self.attempts.check(address, user, now_s, known=known)
        except TooManyAttempts as error:
            return error.wait_s
        return 0.0

    def tries(self, user: str, address: str, *, known: bool = True) -> int:
        """How often it may still fail."""
        count = 0
        while not self.wait_s(user, address, known=known):
            self.fail(user, address, known=known)
            count += 1
        return count


@pytest.mark.parametrize("known", [True, False])
def test_so_many_failures_a_minute_are_let_pass(*, known: bool) -> None:
    case = Case(2)
    case.fail("anna", HERE, 0.0, known=known)
    assert not case.wait_s("anna", HERE, 1.0, known=known)
    case.fail("anna", HERE, 10.0, known=known)

    assert case.wait_s("anna", HERE, 20.0, known=known) == 40.0
    assert not case.wait_s("anna", HERE, 60.0, known=known)


def test_the_refusal_says_who_and_from_where() -> None:
    case = Case(1)
    case.fail("anna", HERE)
    case.fail(TOKENS, HERE)

    with pytest.raises(TooManyAttempts, match="1 logins as anna from 192.0.2.1 have"):
        case.attempts.check(HERE, "anna", 0.0, known=True)
    with pytest.raises(TooManyAttempts, match="1 logins by token from 192.0.2.1 have"):
        case.attempts.check(HERE, TOKENS, 0.0, known=True)


def test_a_neighbour_at_the_same_address_is_not_held_up() -> None:
    case = Case()
    assert case.tries("anna", HERE) == 4

    assert not case.wait_s("bert", HERE)


def test_an_address_that_tries_many_names_has_few_tries_of_each() -> None:
    case = Case()
    for number in range(4):
        case.fail(f"made up {number}", HERE, known=False)

    assert case.attempts.suspects(HERE, 0.0)
    assert case.tries("anna", HERE) == FEW
    assert case.tries("bert", THERE) == 4


def test_a_name_that_is_tried_from_many_addresses_has_few_tries_at_each() -> None:
    case = Case()
    for number in range(4):
        case.fail("anna", f"198.51.100.{number}")

    assert not case.wait_s("anna", HERE), "its owner comes in"
    assert case.tries("anna", HERE) == FEW
    assert case.tries("bert", THERE) == 4


def test_many_addresses_together_have_so_many_tries_of_a_name() -> None:
    case = Case(2)
    case.attempts.succeeded(HERE, "anna")
    tried = 0
    for number in range(100):
        if not case.wait_s("anna", f"127.0.1.{number}"):
            case.fail("anna", f"127.0.1.{number}")
            tried += 1

    assert tried == 2 * ALL_TOGETHER
    assert case.wait_s("anna", "198.51.100.7") == WINDOW_S
    assert not case.wait_s("anna", HERE)
    assert not case.wait_s("bert", "198.51.100.7")


def test_who_has_come_in_from_there_before_is_not_under_suspicion() -> None:
    case = Case()
    case.attempts.succeeded(HERE, "anna")
    for number in range(4):
        case.fail("anna", f"198.51.100.{number}")
        case.fail(f"made up {number}", HERE, known=False)

    assert case.tries("anna", HERE) == 4


def test_made_up_names_do_not_push_out_real_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "MAX_REMEMBERED", 3)
    case = Case(1)
    case.fail("anna", HERE)

    for number in range(10):
        case.fail(f"made up {number}", HERE, known=False)

    assert case.wait_s("anna", HERE)


def test_made_up_names_do_not_bring_back_the_tries_of_all_addresses_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attempts, "MAX_REMEMBERED", 30)
    case = Case(2)
    for number in range(2 * ALL_TOGETHER):
        case.fail("anna", f"127.0.1.{number}")
    assert case.wait_s("anna", THERE)

    for number in range(100):
        case.fail(f"made up {number}", HERE, known=False)

    assert case.wait_s("anna", THERE)


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "MAX_REMEMBERED", 2)
    case = Case(1)

    for user in ("a", "b", "c"):
        case.fail(user, HERE)
        case.attempts.succeeded(HERE, user)

    waits = [bool(case.wait_s(user, HERE)) for user in ("a", "b", "c")]
    assert waits == [False, True, True]


def test_a_clock_that_is_set_back_holds_nobody_up() -> None:
    case = Case(1)
    case.fail("anna", HERE, 1000.0)

    assert not case.wait_s("anna", HERE, 0.0)


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::99", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
        ("nowhere", "nowhere"),
    ],
)
def test_addresses_that_one_peer_has_are_one(address: str, place: str) -> None:
    assert place_of(address) == place
