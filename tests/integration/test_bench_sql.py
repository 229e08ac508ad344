from __future__ import annotations

from pathlib import Path

import pytest

from bench import sql
from bench.rounds import Settings


def test_every_question_is_asked_of_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "EVENTS", 20_000)

    rows = sql.run(Settings(directory=tmp_path, quick=True))

    assert [(row.case, row.contender) for row in rows] == [
        (case, contender)
        for case in sql.QUESTIONS
        for contender in ("Parquet", "topic")
    ]
    assert all(row.ratio.endswith("x of Parquet") for row in rows[1::2])
    assert list(tmp_path.iterdir()) == []
