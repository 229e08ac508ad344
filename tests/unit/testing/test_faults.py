from __future__ import annotations

from penstock.testing import InjectedFault
from penstock.testing.faults import Faults, Mishap

KEY = "billing", "orders"
FINE = Mishap(0.0, None)


def kinds(faults: Faults, count: int) -> list[str]:
    found = [faults.next(KEY).error for _ in range(count)]
    return ["" if one is None else type(one).__name__ for one in found]


def test_the_next_calls_fail_and_then_no_more() -> None:
    faults = Faults()

    faults.fail(KEY, 2, InjectedFault)

    assert kinds(faults, 3) == ["InjectedFault", "InjectedFault", ""]


def test_faults_happen_in_the_order_they_were_planned() -> None:
    faults = Faults()

    faults.fail(KEY, 1, ValueError("no"))
    faults.fail(KEY, 0, OSError)
    faults.fail(KEY, None, KeyError)

    assert kinds(faults, 4) == ["ValueError", "KeyError", "KeyError", "KeyError"]


def test_a_call_may_be_slow_and_fail() -> None:
    faults = Faults()
    error = ValueError("no")

    faults.slow(KEY, 1, 3.0)
    faults.fail(KEY, 1, error)

    assert faults.next(KEY) == Mishap(3.0, error)
    assert faults.next(KEY) == FINE


def test_other_handlers_are_left_alone() -> None:
    faults = Faults()

    faults.fail(KEY, None, InjectedFault)

    assert faults.next(("billing", "payments")) == FINE
    assert faults.next(("shipping", "orders")) == FINE


def test_what_is_healed_does_not_happen() -> None:
    faults = Faults()
    faults.fail(KEY, None, InjectedFault)

    faults.heal()

    assert faults.next(KEY) == FINE


def test_an_error_that_was_raised_before_has_no_old_traceback() -> None:
    faults = Faults()
    error = ValueError("no")
    try:
        raise error
    except ValueError:
        pass

    faults.fail(KEY, 1, error)

    found = faults.next(KEY).error
    assert found is error
    assert found.__traceback__ is None
