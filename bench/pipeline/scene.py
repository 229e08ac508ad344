"""Where it all runs: one scratch directory, and how long to look."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.rounds import Settings


@dataclass
class Scene:
    """``seconds``: of each look at the stages, if it was told."""

    settings: Settings
    seconds: float | None = None

    def fresh(self, name: str) -> Path:
        """A directory that nobody has used yet."""
        number = sum(1 for _ in self.settings.directory.glob(f"{name}-*"))
        folder = self.settings.directory / f"{name}-{number}"
        folder.mkdir()
        return folder
