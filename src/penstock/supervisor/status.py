"""What a run tells of its stages: a file, replaced with every look at them.

The broker of the run reads it, so that whoever looks at the broker sees the pipeline.
Crash promise: none, it is as good as its last second; see server/pipeline_status.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from penstock.files import Files, replace_file
from penstock.supervisor.figures import StageCounts
from penstock.supervisor.process import Process


def tell(
    path: Path,
    rows: Sequence[StageCounts],
    processes: Sequence[Process],
    *,
    running: bool,
    resting: bool = False,
    spark: bool = True,
) -> None:
    """Replace the file; a disk that is full costs the view, and not the pipeline."""
    pids = {one.part.name: one.pid for one in processes}
    stages = [
        {**asdict(row), "state": row.state.value, "pid": pids.get(row.name)}
        for row in rows
    ]
    at_ms = time.time_ns() // 1_000_000
    told = {
        "running": running,
        "resting": resting,
        "spark": spark,
        "at_ms": at_ms,
        "stages": stages,
    }
    data = json.dumps(told, ensure_ascii=False).encode() + b"\n"
    try:
        replace_file(Files(), str(path), data, sync=False)
    except OSError:
        return
