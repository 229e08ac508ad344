"""The benchmark of single events reads what it wrote, both ways, with every reader."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from bench import commits
from bench.rounds import Sample, Settings
from penstock.log import Reader

pytestmark = [pytest.mark.slow]


def test_every_reader_is_measured_with_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "EVENTS", 20_000)
    # Spark has a test of its own, and takes long.
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    rows = commits.run(Settings(directory=tmp_path, quick=True))

    cases = ("to Arrow", "Parquet export", "replay to a new subscriber")
    assert [(row.case, row.contender) for row in rows] == [
        (case, name) for case in cases for name in (commits.MANY, commits.ONE)
    ]
    assert [row.met is None for row in rows] == [True, False] * len(cases)


def test_both_topics_have_the_same_events(tmp_path: Path) -> None:
    found = []
    for name, each in commits.COMMITS.items():
        commits.write(tmp_path / name, 2000, each)
        with Reader.open(tmp_path / name) as reader:
            batches = reader.read(commits.TOPIC, 0)
            found.append([event.payload for one in batches for event in one.events()])

    assert len(found[0]) == 2000 and found[0] == found[1]


@pytest.mark.parametrize(("seconds", "met"), [(1.4, True), (1.6, False)])
def test_single_events_may_take_half_as_long_again(seconds: float, met: bool) -> None:
    one, many = (
        Sample(events=9, bytes=9, seconds=took, cpu_s=1.0) for took in (seconds, 1.0)
    )

    _, row = commits.rows_of("to Arrow", {commits.MANY: many, commits.ONE: one})

    assert row.met is met and row.ratio == f"{seconds:.2f}x the time of 1 000 a commit"
