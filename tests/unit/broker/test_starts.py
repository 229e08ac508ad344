"""Words and numbers become offsets within the topic."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.broker.starts import resolved
from penstock.log import Columns, Log


@pytest.mark.parametrize(
    ("start", "offset"),
    [
        ("earliest", 1),
        ("latest", 4),
        (2, 2),
        ("3", 3),
        (0, 1),
        (99, 4),
        ("time:1500", 2),
        ("time:9000", 3),
    ],
)
def test_start_means_an_offset_of_the_topic(
    tmp_path: Path, start: str | int, offset: int
) -> None:
    with Log.open(tmp_path) as log:
        log.create_topic("t")
        log.append("t", Columns([b"a", b"b", b"c"], [1000, 1000, 2000]))
        log.sync()
        log.trim("t", 1)
        log.append("t", Columns([b"not committed yet"], 3000))

        assert resolved(log, "t", start) == offset
