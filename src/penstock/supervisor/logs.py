"""Logs of parts that run for days: shortened while they are written.

A part has its log open for appending, and goes on at the new end of it when it has been
cut. What was in it is kept beside it, once: ``spark.log`` and ``spark.log.1``.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from penstock.files import Files, make_file

# Of a log; there are two for each part.
MOST_BYTES = 4 << 20


def shorten(path: Path, most_bytes: int = MOST_BYTES) -> bool:
    """Empty a log that is too long; whether it was.

    A line that comes between copying and cutting is lost: it is a log.
    """
    try:
        if path.stat().st_size <= most_bytes:
            return False
    except FileNotFoundError:
        return False
    before = path.with_name(f"{path.name}.1")
    make_file(Files(), str(before))
    shutil.copyfile(path, before)
    os.truncate(path, 0)
    return True
