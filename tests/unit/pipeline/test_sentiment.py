"""The list of AFINN, and VADER; what Spark makes of them is in tests/spark."""

from __future__ import annotations

import pyarrow as pa

from penstock.pipeline.sentiment import SIGNS, compound, compounds
from penstock.tweets.words import emotion_values


def test_entries_with_spaces_are_the_only_ones_that_are_never_found() -> None:
    words = emotion_values()

    assert sum(" " in word for word in words) == 14
    assert [word for word in words if set(word) & set(SIGNS)] == []


def test_compounds_are_vaders_and_remembered() -> None:
    compound.cache_clear()
    texts = pa.array(["I love it!", None, "", "I love it!"])

    found = compounds(texts)

    assert found.to_pylist() == [0.6696, None, 0.0, 0.6696]
    assert found.type == pa.float64()
    assert (compound.cache_info().misses, compound.cache_info().hits) == (2, 1)
