from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.client import plan
from tests.unit.cli.desk_run import DeskRun


def test_documentation_is_taken_from_a_file_and_shown(
    run: DeskRun, tmp_path: Path
) -> None:
    run.ask("topics.create", name="t")
    (tmp_path / "t.md").write_text("# Grüße\n")
    assert run.lines("topics", "describe", "t") == ["topic t is not documented"]

    said = run.lines("topics", "describe", "t", str(tmp_path / "t.md"))

    assert said == ["documented topic t"]
    assert run.lines("topics", "describe", "t")[0] == "# Grüße"
    (line,) = run.lines("topics", "describe", "t", "--json")
    assert json.loads(line)["text"] == "# Grüße\n"
    assert "documented  yes" in run.lines("topics", "show", "t")


def test_documentation_is_taken_from_standard_input_and_removed(run: DeskRun) -> None:
    run.ask("topics.create", name="t")
    run("topics", "describe", "t", "-", input=b"text")
    assert run.lines("topics", "describe", "t") == ["text"]

    removed = run("topics", "describe", "t", "-", input=b"")

    assert removed.stdout == "t: removed\n"
    assert run.lines("topics", "describe", "t") == ["topic t is not documented"]


def test_comments_are_added_shown_and_removed(
    run: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.ask("topics.create", name="t")
    assert run.lines("topics", "comments", "t") == ["no comments on t"]
    assert run.lines("topics", "comment", "t", "one\ntwo") == ["comment 1 on t"]
    run.lines("topics", "comment", "t", "three")
    (line,) = run.lines("topics", "comment", "t", "four", "--json")
    assert json.loads(line)["number"] == 3
    monkeypatch.setattr(plan, "PAGE_ROWS", 2)

    lines = run.lines("topics", "comments", "t")

    assert lines[0].startswith("1  ")
    assert lines[1:3] == ["   one", "   two"]
    assert run.lines("topics", "uncomment", "t", "2") == ["removed comment 2 from t"]
    (gone,) = run.lines("topics", "uncomment", "t", "3", "--json")
    assert json.loads(gone)["text"] == "four"
    (left,) = run.lines("topics", "comments", "t", "--json")
    assert [one["number"] for one in json.loads(left)] == [1]
    assert "has no comment 2" in run.refused("topics", "uncomment", "t", "2")


def test_a_topic_that_is_not_there_is_told(run: DeskRun) -> None:
    assert "does not exist" in run.refused("topics", "comment", "t", "x")
