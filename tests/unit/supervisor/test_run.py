"""Real parts without Spark; tests/process/test_up.py has the rest."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import pytest

from penstock.errors import PartFailed
from penstock.supervisor.alone import alone
from penstock.supervisor.figures import Row
from penstock.supervisor.part import Places
from penstock.supervisor.plan import Ports, Wanted
from penstock.supervisor.process import State
from penstock.supervisor.run import Up, _Quiet

FREE = Ports(line=0, native=0, control=0, tweets=0)
SERVE = ("--no-json", "--no-maze")


class Kept:
    """A display for a test: all rows that it was given."""

    def __init__(self) -> None:
        self.rows: list[Sequence[Row]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def show(self, rows: Sequence[Row], heading: str, now_s: float) -> None:
        self.rows.append(rows)


def wanted(**changed: object) -> Wanted:
    values = {"rate": 300.0, "seed": 1, "spark": False, "ports": FREE, "serve": SERVE}
    return Wanted(**{**values, **changed})  # type: ignore[arg-type]


def test_a_run_ends_with_books_that_agree(tmp_path: Path) -> None:
    display = Kept()

    outcome = Up(wanted(), Places(tmp_path / "data"), display).run(1.0)

    assert outcome.good, outcome
    assert {one.what: one.right for one in outcome.accounts}["tweets in firehose"]
    assert [row.name for row in outcome.rows] == [
        "broker",
        "source",
        "ingest",
        "subscriber firehose",
    ]
    assert any(row.state is State.READY for rows in display.rows for row in rows)


def test_a_source_that_ends_ends_the_run(tmp_path: Path) -> None:
    places = Places(tmp_path / "data")

    outcome = Up(wanted(count=200, rate=0.0), places, Kept()).run(None)

    assert outcome.good, outcome
    assert {row.name: row.events for row in outcome.rows}["ingest"] == 400


def test_a_part_that_cannot_start_ends_everything(tmp_path: Path) -> None:
    bad = wanted(serve=("--no-json", "--no-maze", "--config", "nowhere.toml"))

    with pytest.raises(PartFailed, match=r"broker .*nowhere\.toml"):
        Up(bad, Places(tmp_path / "data"), Kept()).run(1.0)


def test_one_runs_in_a_directory_at_a_time(tmp_path: Path) -> None:
    places = Places(tmp_path / "data")
    places.make()

    with alone(places), pytest.raises(PartFailed, match="another one runs"):
        Up(wanted(), places, Kept()).run(1.0)


@pytest.mark.slow
def test_a_part_that_is_killed_comes_back_where_it_was(tmp_path: Path) -> None:
    places = Places(tmp_path / "data")
    ports = []

    class Killer(Kept):
        def show(self, rows: Sequence[Row], heading: str, now_s: float) -> None:
            told = places.ready("broker")
            if len(rows) == 4 and rows[0].state is State.READY and told.exists():
                found = json.loads(told.read_bytes())
                ports.append(found["ports"])
                if len(ports) == 1:
                    os.kill(found["pid"], signal.SIGKILL)

    outcome = Up(wanted(count=500), places, Killer()).run(None)

    assert outcome.good, outcome
    assert outcome.rows[0].restarts == 1
    assert len(ports) > 1 and ports[0] == ports[-1]
    assert {row.name: row.events for row in outcome.rows}["ingest"] == 1000


def test_a_signal_ends_it_and_nothing_is_compared(tmp_path: Path) -> None:
    up = Up(wanted(), Places(tmp_path / "data"), Kept())

    class Impatient(Kept):
        def show(self, rows: Sequence[Row], heading: str, now_s: float) -> None:
            up.stop()

    up._display = Impatient()
    outcome = up.run(60.0)

    assert outcome.interrupted and not outcome.good
    assert outcome.seconds < 60


def test_it_is_over_when_nothing_moves_and_nobody_is_behind() -> None:
    quiet = _Quiet(0.0)
    rows = [Row(name="cdc", state=State.READY, events=5, lag=0)]
    late = [Row(name="cdc", state=State.READY, events=5, lag=2)]

    looks = [quiet.look(rows, 1.0 + n) for n in range(_Quiet.LOOKS + 1)]

    assert looks == [False] * _Quiet.LOOKS + [True]
    assert quiet.moved_s == 1.0
    assert not quiet.look(late, 50.0)
    assert not quiet.look([Row(name="cdc", state=State.READY, events=6, lag=0)], 60.0)
    assert quiet.moved_s == 60.0
