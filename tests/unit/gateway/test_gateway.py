from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.access.grants import OPEN
from penstock.gateway.gateway import Gateway


def test_a_gateway_greets_nobody_and_asks_for_nothing_unless_it_says_so() -> None:
    gateway = Gateway()

    gateway.connected(0.0)

    assert not gateway.closing
    assert gateway.settled
    assert gateway.login is None
    assert gateway.grants is OPEN
    assert (gateway.lingers, gateway.patience_s) == (False, 0.0)


def test_a_peer_that_has_timed_out_is_closed_and_a_farewell_is_not_needed() -> None:
    gateway = Gateway()

    gateway.part(0.0)
    assert not gateway.closing
    gateway.timed_out(0.0)

    assert gateway.closing


@pytest.mark.parametrize(
    "step",
    [
        lambda gateway: gateway.receive(b"", 0.0),
        lambda gateway: gateway.eof(0.0),
        lambda gateway: gateway.logged_in(True, 0.0),
        lambda gateway: gateway.output(0.0, 1),
        lambda gateway: gateway.disconnected(0.0),
    ],
)
def test_every_protocol_has_its_own_way_for_the_rest(
    step: Callable[[Gateway], object],
) -> None:
    with pytest.raises(NotImplementedError):
        step(Gateway())
