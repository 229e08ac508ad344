"""Directories that are made once, whole or not at all, in the user's cache.

Named by what they hold, so they never change; a process that comes second, or at the
same moment, takes what is there. All of it can be removed and is made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.files import Files


def directory(environment: Mapping[str, str] | None = None) -> Path:
    """Where Penstock keeps what can be made again."""
    given = os.environ if environment is None else environment
    base = given.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "penstock"


def place(kept_in: Path, name: str, of: str) -> Path:
    """Where the directory ``name-…`` is, or will be."""
    return kept_in / f"{name}-{hashlib.sha256(of.encode()).hexdigest()[:16]}"


def made(kept_in: Path, name: str, of: str, fill: Callable[[Path], None]) -> Path:
    """The directory ``name-…``, made by ``fill``; ``of`` says all that is in it."""
    target = place(kept_in, name, of)
    if target.is_dir():
        return target
    kept_in.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=kept_in))
    try:
        fresh.chmod(0o755)
        fill(fresh)
        with contextlib.suppress(OSError):  # another process was faster
            Files().rename(str(fresh), str(target))
        if not target.is_dir():
            raise NotADirectoryError(f"{target} is in the way")
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target
