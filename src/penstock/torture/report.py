"""What a run did and found, in words that can be pasted into a bug report."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock import __version__


@dataclass
class Report:
    seed: int
    disk: str
    """The kind of file system it ran on."""
    seconds: float = 0.0
    servers: int = 0
    brokers: int = 0
    on_disk: Counter[str] = field(default_factory=Counter)
    on_power: Counter[str] = field(default_factory=Counter)
    promises: int = 0
    refusals: int = 0
    whole: bool = False
    """Whether it came to its end."""
    broken: str | None = None
    """What did not hold."""
    where: str = ""
    kept: Path | None = None
    """What is left to be looked at."""

    @property
    def line(self) -> str:
        """How far it has come."""
        accidents = self.on_disk.total() + self.on_power.total()
        return f"{accidents} accidents, {self.promises:,} promises"

    @property
    def _verdict(self) -> str:
        if self.broken is not None:
            return "A PROMISE IS BROKEN"
        held = "every promise held"
        return held if self.whole else f"{held} so far; it was interrupted"

    def lines(self) -> Iterator[str]:
        yield f"Penstock {__version__}: {self._verdict}"
        yield f"  seed      {self.seed}, {self.seconds:.0f} s"
        system = f"{platform.system()} {platform.release()} {platform.machine()}"
        yield f"  machine   Python {platform.python_version()}, {system}, {self.disk}"
        yield f"  on disk   {_counted(self.servers, 'server')}: {_all(self.on_disk)}"
        yield f"  on power  {_counted(self.brokers, 'broker')}: {_all(self.on_power)}"
        yield f"  promises  {self.promises:,} made to clients of all gateways"
        yield f"  refused   {self.refusals:,}, and the client was told"
        if self.broken is not None:
            yield f"  broken    {self.broken}"
            yield f"  where     {self.where}"
        if self.broken is not None and self.kept is not None:
            yield f"  kept      {self.kept}"


def file_system(directory: Path) -> str:
    """The kind of file system that a directory is on, as the kernel tells it."""
    device = directory.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return "an unknown file system"
    for fields in map(str.split, mounts):
        if fields[2] == number:
            return fields[fields.index("-") + 1]
    return "an unknown file system"


def _all(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.items()) or "none yet"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
