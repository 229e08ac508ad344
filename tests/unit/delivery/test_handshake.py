from __future__ import annotations

from itertools import product

import pytest

from penstock.delivery.handshake import OUTBOUND, Answer, Stage, next_stage


@pytest.mark.parametrize(
    ("qos", "stage", "answer", "next_"),
    [
        (1, Stage.SENT, Answer.ACK, Stage.SETTLED),
        (2, Stage.SENT, Answer.PUBREC, Stage.RELEASED),
        (2, Stage.RELEASED, Answer.PUBREC, Stage.RELEASED),
        (2, Stage.RELEASED, Answer.PUBCOMP, Stage.SETTLED),
    ],
)
def test_answer_moves_a_delivery_on(
    qos: int, stage: Stage, answer: Answer, next_: Stage
) -> None:
    assert next_stage(qos, stage, answer) is next_


def test_whatever_is_not_in_the_table_makes_no_sense() -> None:
    everything = set(product((0, 1, 2), Stage, Answer))

    senseless = {one for one in everything if next_stage(*one) is None}

    assert senseless == everything - OUTBOUND.keys()
    assert len(OUTBOUND) == 4
