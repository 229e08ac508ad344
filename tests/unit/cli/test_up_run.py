from __future__ import annotations

from penstock.cli.up_run import summary
from penstock.supervisor.accounts import Account
from penstock.supervisor.figures import Row
from penstock.supervisor.process import State
from penstock.supervisor.run import Outcome


def row(name: str, events: int, restarts: int = 0) -> Row:
    return Row(name=name, state=State.ENDED, events=events, lag=0, restarts=restarts)


def test_a_good_run_is_told() -> None:
    outcome = Outcome([row("broker", 1000)], [Account("tweets", 5, 5)], 61.4, [])

    assert summary(outcome) == [
        "ran for 61 s",
        "  broker: 1 000 events",
        "  ok    tweets: 5",
        "all went well",
    ]


def test_one_that_was_ended_early_claims_nothing() -> None:
    outcome = Outcome([row("broker", 0, restarts=1)], [], 3.0, [])

    assert not outcome.good
    assert summary(outcome) == [
        "ran for 3 s",
        "  broker: 0 events, started again once",
        "ended before all was worked off: nothing is compared",
    ]


def test_a_source_that_was_read_before_may_be_idle() -> None:
    rows, right = [row("source", 0), row("spark", 1)], [Account("tweets", 5, 5)]

    assert not Outcome(rows, right, 1.0, []).good
    assert Outcome(rows, right, 1.0, [], over=True).good


def test_what_went_wrong_is_told() -> None:
    rows = [row("broker", 7, restarts=2), row("spark", 0)]
    outcome = Outcome(rows, [Account("tweets", 5, 4)], 1.0, ["cdc"])

    assert not outcome.good
    assert summary(outcome)[1:] == [
        "  broker: 7 events, started again 2 times",
        "  spark: 0 events",
        "  WRONG tweets: 4 instead of 5 (-1)",
        "  WRONG spark did nothing",
        "  WRONG cdc did not finish",
        "something is wrong, see above",
    ]
