from __future__ import annotations

import time
from pathlib import Path

from penstock.server.process_info import pipeline_status
from penstock.supervisor.figures import StageCounts
from penstock.supervisor.part import Part, Places
from penstock.supervisor.process import PartState, Process
from penstock.supervisor.run import tell


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_a_broker_understands_what_a_run_tells(tmp_path: Path) -> None:
    places = Places(tmp_path)
    places.make()
    rows = [
        StageCounts(
            name="source", state=PartState.READY, events=7, rate=1.5, lag=2, restarts=1
        ),
        StageCounts(name="spark", state=PartState.PAUSED, note="no “Java” [here]"),
    ]
    processes = [Process(Part(name="source", command=("true",)), places)]

    tell(places.view, rows, processes, running=True)

    found = pipeline_status(str(places.view), now_ms())
    source, spark = found.stages
    assert found.running
    assert (source.name, source.state, source.events) == ("source", "ready", 7)
    assert (source.rate, source.lag, source.restarts, source.pid) == (1.5, 2, 1, None)
    assert (spark.state, spark.events, spark.note) == (
        "restarting",
        None,
        "no “Java” [here]",
    )


def test_a_run_tells_its_end(tmp_path: Path) -> None:
    tell(tmp_path / "status.json", [], [], running=False)

    assert not pipeline_status(str(tmp_path / "status.json"), now_ms()).running


def test_a_file_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    tell(tmp_path / "nowhere" / "status.json", [], [], running=True)

    assert not (tmp_path / "nowhere").exists()
