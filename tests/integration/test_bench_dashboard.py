"""The benchmark of the dashboard says why it does not run where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import dashboard
from bench.rounds import Settings


def test_without_a_browser_it_is_skipped_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(dashboard, "NAMES", ())

    rows = dashboard.run(Settings(directory=tmp_path, quick=True))

    assert rows == []
    assert "dashboard: skipped, chromium is not installed" in capsys.readouterr().out
