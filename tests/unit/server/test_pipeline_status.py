from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.server.process_info import NOT_RUNNING, STALE_MS, pipeline_status

STAGE = {"name": "spark", "state": "ready", "events": 5, "restarts": 1}


def told(path: Path, at_ms: int, *, running: bool = True) -> str:
    path.write_text(json.dumps({"running": running, "stages": [STAGE], "at_ms": at_ms}))
    return str(path)


def test_the_stages_are_as_they_were_told(tmp_path: Path) -> None:
    found = pipeline_status(told(tmp_path / "status.json", 1_000), 1_500)

    assert found.running
    assert [(one.name, one.events, one.lag) for one in found.stages] == [
        ("spark", 5, None)
    ]


def test_what_was_told_long_ago_runs_no_more(tmp_path: Path) -> None:
    found = pipeline_status(told(tmp_path / "status.json", 1_000), 1_000 + STALE_MS)

    assert not found.running
    assert found.stages  # as they were last


def test_who_says_that_it_ended_runs_no_more(tmp_path: Path) -> None:
    path = told(tmp_path / "status.json", 1_000, running=False)

    assert not pipeline_status(path, 1_000).running


@pytest.mark.parametrize("text", ["", "{", "[]", '{"running": 1}'])
def test_what_is_no_status_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "status.json").write_text(text)

    assert pipeline_status(str(tmp_path / "status.json"), 0) == NOT_RUNNING


def test_nobody_tells_where_there_is_no_file(tmp_path: Path) -> None:
    assert pipeline_status(None, 0) == NOT_RUNNING
    assert pipeline_status(str(tmp_path / "none"), 0) == NOT_RUNNING
