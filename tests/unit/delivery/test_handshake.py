from __future__ import annotations

from itertools import product

import pytest

from penstock.delivery.handshake import OUTBOUND, Reply, next_state
from penstock.delivery.states import OwedState


@pytest.mark.parametrize(
    ("qos", "state", "answer", "next_"),
    [
        (1, OwedState.SENT, Reply.ACK, OwedState.SETTLED),
        (1, OwedState.ALONE, Reply.ACK, OwedState.SETTLED),
        (2, OwedState.SENT, Reply.PUBREC, OwedState.RELEASED),
        (2, OwedState.ALONE, Reply.PUBREC, OwedState.RELEASED),
        (2, OwedState.RELEASED, Reply.PUBREC, OwedState.RELEASED),
        (2, OwedState.RELEASED, Reply.PUBCOMP, OwedState.SETTLED),
    ],
)
def test_answer_moves_a_delivery_on(
    qos: int, state: OwedState, answer: Reply, next_: OwedState
) -> None:
    assert next_state(qos, state, answer) is next_


def test_whatever_is_not_in_the_table_makes_no_sense() -> None:
    everything = set(product((0, 1, 2), OwedState, Reply))

    senseless = {one for one in everything if next_state(*one) is None}

    assert senseless == everything - OUTBOUND.keys()
    assert len(OUTBOUND) == 6
