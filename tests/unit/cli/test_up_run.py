from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from penstock.cli.main import cli
from penstock.cli.up_run import summary
from penstock.supervisor.comparisons import Comparison
from penstock.supervisor.figures import StageCounts
from penstock.supervisor.outcome import Outcome, Times
from penstock.supervisor.process import PartState


def row(
    name: str, events: int, restarts: int = 0, new: int | None = None
) -> StageCounts:
    return StageCounts(
        name=name,
        state=PartState.ENDED,
        events=events,
        new=events if new is None else new,
        lag=0,
        restarts=restarts,
    )


def test_a_good_run_is_told() -> None:
    rows = [row("broker", 1000), row("spark", 900, new=300)]
    outcome = Outcome(rows, [Comparison("tweets", 5, 5)], Times(12.0, 60.0, 4.4), [])

    assert summary(outcome) == [
        "ran for 76 s: 12 s to start, 60 s at work, 4 s to work off the rest",
        "  broker: 1 000 events",
        "  spark: 300 events, 900 with earlier runs",
        "  ok    tweets: 5",
        "all went well: nothing was lost, and nothing counted twice",
    ]


def test_one_that_was_ended_early_claims_nothing() -> None:
    notes = ["ended while waiting for the store mongodb://h/db"]
    rows = [row("broker", 0, restarts=1)]
    outcome = Outcome(rows, [], Times(3.0), [], notes=notes)

    assert not outcome.good
    assert summary(outcome) == [
        "ran for 3 s",
        "  broker: 0 events, started again once",
        "ended while waiting for the store mongodb://h/db",
        "ended before all was worked off: nothing is compared",
    ]


def test_a_source_that_was_read_before_may_be_idle() -> None:
    rows, right = [row("source", 0), row("spark", 1)], [Comparison("tweets", 5, 5)]

    assert not Outcome(rows, right, Times(1.0), []).good
    assert Outcome(rows, right, Times(1.0), [], over=True).good


def test_what_went_wrong_is_told() -> None:
    rows = [row("broker", 7, restarts=2), row("spark", 0)]
    outcome = Outcome(rows, [Comparison("tweets", 5, 4)], Times(1.0), ["cdc"])

    assert not outcome.good
    assert summary(outcome)[1:] == [
        "  broker: 7 events, started again 2 times",
        "  spark: 0 events",
        "  WRONG tweets: 4 instead of 5 (-1)",
        "  WRONG spark did nothing",
        "  WRONG cdc did not finish",
        "something is wrong: 3 of the lines above say WRONG",
    ]


def test_a_checkpoint_of_an_earlier_version_is_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    begun = tmp_path / "up" / "checkpoints" / "tweets"
    begun.mkdir(parents=True)
    (begun / "metadata").write_text('{"id":"7"}')

    result = CliRunner().invoke(cli, ["up", "--data", str(tmp_path), "--for", "1s"])

    assert result.exit_code == 2
    assert "was begun by an earlier version of the pipeline" in result.stderr
    assert "hint: `penstock up`: give another --data" in result.stderr
    assert [*tmp_path.iterdir()] == [tmp_path / "up"]
    assert [*(tmp_path / "up").iterdir()] == [tmp_path / "up" / "checkpoints"]
