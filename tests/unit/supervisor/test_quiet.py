from __future__ import annotations

from penstock.supervisor.figures import StageCounts
from penstock.supervisor.process import PartState
from penstock.supervisor.run import Quiet


def test_it_is_over_when_nothing_moves_and_nobody_is_behind() -> None:
    quiet = Quiet(0.0)
    rows = [StageCounts(name="cdc", state=PartState.READY, events=5, lag=0)]
    late = [StageCounts(name="cdc", state=PartState.READY, events=5, lag=2)]

    looks = [quiet.look(rows, 1.0 + n) for n in range(Quiet.LOOKS + 1)]

    assert looks == [False] * Quiet.LOOKS + [True]
    assert quiet.moved_s == 1.0
    assert not quiet.look(late, 50.0)
    assert not quiet.look(
        [StageCounts(name="cdc", state=PartState.READY, events=6, lag=0)], 60.0
    )
    assert quiet.moved_s == 60.0


def test_looks_may_be_counted_anew() -> None:
    quiet = Quiet(0.0)
    rows = [StageCounts(name="cdc", state=PartState.READY, events=5, lag=0)]
    for _ in range(Quiet.LOOKS + 1):
        over = quiet.look(rows, 1.0)
    assert over

    quiet.again()

    assert not quiet.look(rows, 2.0)
