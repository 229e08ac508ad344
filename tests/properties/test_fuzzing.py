"""Codecs meet mutated inputs: 20 000 of them, and ten million with the deep profile.

A failure names the seed and the input; ``fuzz(target, seed, count)`` repeats it.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import hypothesis
import pytest

from tests.properties.fuzz_targets import targets
from tests.properties.fuzzing import Found, Target, fuzz

DEEP = hypothesis.settings.get_current_profile_name() == "deep"
INPUTS = 10_000_000 if DEEP else 20_000
TARGETS = targets()
# The same in every run, unless somebody has the time for others.
SEED = Random().getrandbits(32) if DEEP else 14


@pytest.mark.parametrize("target", TARGETS, ids=[one.name for one in TARGETS])
def test_whatever_comes_a_codec_reads_or_refuses_it(target: Target) -> None:
    fuzz(target, SEED, -(-INPUTS // len(TARGETS)))


# The harness itself


def naive(pieces: Sequence[bytes]) -> object:
    """Trusts the length it is told."""
    data = b"".join(pieces)
    return data[1 + data[0]] if data else None


def forgetful(pieces: Sequence[bytes]) -> object:
    """Takes the end of a piece for the end of a line."""
    return [one for piece in pieces for one in piece.split(b"\n")]


PLANTED = {
    "an error that nobody documents": (naive, False, "IndexError"),
    "lines that depend on the pieces": (forgetful, True, "became"),
}


@pytest.mark.parametrize(("run", "streams", "what"), PLANTED.values(), ids=PLANTED)
def test_a_planted_fault_is_found(run: object, streams: bool, what: str) -> None:
    corpus = [b"\x02ab", b"\x03abc\n"]
    bad = Target(name="bad", corpus=corpus, run=run, streams=streams)  # type: ignore[arg-type]

    with pytest.raises(Found, match=what) as found:
        fuzz(bad, SEED, 1000)

    assert f"seed {SEED}" in str(found.value)
    with pytest.raises(Found) as again:
        fuzz(bad, SEED, 1000)
    assert str(again.value) == str(found.value)
