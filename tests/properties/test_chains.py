"""What the index of chains answers is what looking at everything finds."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.chains import ChainQuestion
from penstock.chains.walk import Direction
from tests.properties.chain_model import NAMES, Forest

DIRECTIONS: tuple[Direction, ...] = ("both", "up", "down")


@given(st.integers(0, 1 << 32), st.integers(5, 40))
@example(seed=2475, steps=20)  # batches were gathered that had rows of their own
def test_an_answer_is_that_of_a_scan_whatever_happened(seed: int, steps: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        forest = Forest(Path(folder), seed)
        history = []
        for _ in range(steps):
            history.append(forest.act())
            id_ = forest.random.choice([*NAMES, *forest.known])
            direction = forest.random.choice(DIRECTIONS)
            if forest.random.random() < 0.3:
                question = ChainQuestion(id=id_, direction=direction, limit=10**6)
                said = f"seed {seed}: {id_} {direction} after {history}"
                assert forest.ask(question) == forest.expected(id_, direction), said
        forest.close()
