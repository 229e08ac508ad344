"""The benchmark of HTTP runs, and says what it promised to say."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import http, http_beside
from bench.rounds import Settings

pytestmark = [pytest.mark.slow, pytest.mark.deep]


def test_every_contender_is_measured_beside_the_line_gateway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than the ticks in which the system counts CPU.
    monkeypatch.setattr(http, "QUICK_SECONDS", 0.3)
    monkeypatch.setattr(http, "SIZES", {"100 B": 100})
    monkeypatch.setattr(http, "LONG_TOPIC", 100_000)
    monkeypatch.setattr(http, "ASKED", 5)
    monkeypatch.setattr(http_beside, "QUICK_SECONDS", 0.05)
    monkeypatch.setattr(http_beside, "ROUNDS", 1)
    monkeypatch.setattr(http_beside, "ALONE", 3)

    rows = http.run(Settings(directory=tmp_path, quick=True))

    published = [row for row in rows if row.benchmark == http.PUBLISH]
    beside = [row for row in rows if row.benchmark == http_beside.NAME]
    pages = [row for row in rows if row.benchmark == http.PAGES]
    assert [row.contender for row in published] == list(http.CONTENDERS)
    assert all(row.ratio for row in published[1:])
    assert [bool(row.target) for row in beside] == [False, True, True, True]
    assert len(pages) == 6
    assert {row.case for row in pages} == {
        "0.01 M events, after a restart",
        "0.01 M events, again",
    }
