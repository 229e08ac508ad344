"""A log of PostgreSQL that is a list, read with interruptions anywhere."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from penstock.cdc.place import CapturePosition, CaptureProgress, place_of

START = CapturePosition("0/10")

# Transactions: how many changes of ours each has; none is one of other tables only.
transactions = st.lists(st.integers(0, 4), max_size=6)
# After how many steps the reader is cut off, again and again.
cuts = st.lists(st.integers(0, 30), max_size=8)
Step = tuple[str, int, int]


def steps_of(sizes: list[int]) -> list[Step]:
    """What PostgreSQL sends: begin, changes, commit, and a keepalive behind each."""
    found: list[Step] = []
    for index, size in enumerate(sizes):
        commit_lsn = 0x20 + index * 0x10
        if size:
            found.append(("begin", commit_lsn, 0))
            found += [("change", commit_lsn, number + 1) for number in range(size)]
            found.append(("commit", commit_lsn + 8, 0))
        found.append(("keepalive", commit_lsn + 8, 0))
    return found


def read(progress: CaptureProgress, steps: list[Step]) -> list[tuple[int, int]]:
    """The changes that were new."""
    new = []
    for kind, lsn, number in steps:
        if kind == "begin":
            progress.begun(lsn)
        elif kind == "commit":
            progress.committed(lsn)
        elif kind == "keepalive":
            progress.passed(lsn)
        elif progress.is_new():
            assert (progress.commit_lsn, progress.number) == (lsn, number)
            new.append((lsn, number))
    return new


@given(transactions, cuts, st.booleans())
def test_every_change_is_new_once_wherever_one_is_cut_off(
    sizes: list[int], cuts: list[int], from_start: bool
) -> None:
    steps = steps_of(sizes)
    place = START
    found = []
    for cut in [*cuts, len(steps)]:
        progress = CaptureProgress(place)
        # What PostgreSQL believes to be stored: nothing, or all that is.
        sent = [step for step in steps if from_start or step[1] >= progress.end]
        found += read(progress, sent[:cut])
        place = place_of(progress.place())

    assert found == [step[1:] for step in steps if step[0] == "change"]


@given(transactions, st.integers(0, 30), st.integers(0, 30))
def test_a_place_never_goes_back(sizes: list[int], first: int, second: int) -> None:
    steps = steps_of(sizes)
    before = CaptureProgress(START)
    read(before, steps[:first])
    after = CaptureProgress(place_of(before.place()))

    assert after.place() == before.place()
    read(after, steps[:second])

    if second <= first:
        assert after.place() == before.place()


def test_a_keepalive_within_a_transaction_is_none_of_its_changes() -> None:
    progress = CaptureProgress(START)
    progress.begun(0x20)
    progress.passed(0x30)

    assert progress.is_new()
    assert json.loads(progress.place()) == {"end": "0/10", "part": "0/20", "done": 1}


def test_a_place_between_transactions_is_short() -> None:
    progress = CaptureProgress(CapturePosition("0/10", "0/20", 3))
    progress.passed(0x28)

    assert progress.place() == '{"end":"0/28"}'
