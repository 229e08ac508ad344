"""Processes as the system sees them: processor, memory, threads, and how long."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from penstock import __version__
from penstock.desk.views.figures import Machine, Pipeline, Processes, ProcessRow

BROKER = "broker"
# Packages whose versions are told if they are installed: name here -> there.
PACKAGES = {
    "uvloop": "uvloop",
    "msgspec": "msgspec",
    "starlette": "starlette",
    "uvicorn": "uvicorn",
    "pyarrow": "pyarrow",
    "spark": "pyspark",
}
# Shares of less time than this are noise.
LEAST_S = 0.5

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Seen:
    """One process at one moment."""

    __slots__ = ("at_s", "began_s", "cpu_s", "ended_s", "memory_bytes", "threads")

    def __init__(self, stat: str, at_s: float) -> None:
        """``stat`` is that of /proc: the name in brackets may hold anything."""
        found = stat[stat.rindex(")") + 2 :].split()
        self.at_s = at_s
        self.cpu_s = (int(found[11]) + int(found[12])) / _TICKS
        self.ended_s = (int(found[13]) + int(found[14])) / _TICKS
        """The same of what it has started and has ended."""
        self.threads = int(found[17])
        self.began_s = int(found[19]) / _TICKS
        self.memory_bytes = int(found[21]) * _PAGE

    def add(self, other: Seen) -> None:
        """Count a process that this one has started."""
        self.cpu_s += other.cpu_s
        self.threads += other.threads
        self.memory_bytes += other.memory_bytes


class ProcessWatch:
    """Looks at processes; a share of a core is over the time between two looks."""

    def __init__(self) -> None:
        self._seen: dict[int, Seen] = {}
        self._shares: dict[int, float] = {}
        self._versions: dict[str, str] | None = None

    def look(self, pipeline: Pipeline) -> Processes:
        """This process, and the parts of a pipeline that runs it."""
        rows = [self._row(BROKER, os.getpid(), 0, "ready")]
        for stage in pipeline.stages if pipeline.running else ():
            if stage.pid != os.getpid():
                rows.append(
                    self._row(stage.name, stage.pid, stage.restarts, stage.state)
                )
            else:
                rows[0] = self._row(BROKER, stage.pid, stage.restarts, stage.state)
        known = {row.pid for row in rows}
        for pid in [pid for pid in self._seen if pid not in known]:
            del self._seen[pid]
            self._shares.pop(pid, None)
        return Processes(
            processes=rows,
            versions=self._told_versions(),
            machine=Machine(
                cores=os.cpu_count() or 1,
                memory_bytes=os.sysconf("SC_PHYS_PAGES") * _PAGE,
            ),
        )

    def _row(self, name: str, pid: int | None, restarts: int, state: str) -> ProcessRow:
        look = seen_of if name == BROKER else tree_of
        seen = None if pid is None else look(pid)
        return ProcessRow(
            name=name,
            pid=pid,
            cpu=None if pid is None or seen is None else self._share(pid, seen),
            memory_bytes=None if seen is None else seen.memory_bytes,
            threads=None if seen is None else seen.threads,
            uptime_s=None if seen is None else round(seen.at_s - seen.began_s, 1),
            restarts=restarts,
            state=state,
        )

    def _share(self, pid: int, now: Seen) -> float:
        """Of one core since the last look; at the first one, since its start."""
        before = self._seen.get(pid)
        if before is not None and before.began_s == now.began_s:
            seconds = now.at_s - before.at_s
            if seconds < LEAST_S:
                return self._shares[pid]
            spent = max(now.cpu_s - before.cpu_s, 0.0)
        else:
            seconds, spent = now.at_s - now.began_s, now.cpu_s
        self._seen[pid] = now
        self._shares[pid] = share = round(spent / max(seconds, 1 / _TICKS), 3)
        return share

    def _told_versions(self) -> dict[str, str]:
        if self._versions is None:
            # Here, as it takes a while to load and few ever ask.
            from importlib.metadata import PackageNotFoundError, version

            python = ".".join(map(str, sys.version_info[:3]))
            found = {"penstock": __version__, "python": python}
            for name, package in PACKAGES.items():
                try:
                    found[name] = version(package)
                except PackageNotFoundError:
                    continue
            self._versions = found
        return self._versions


def tree_of(pid: int) -> Seen | None:
    """A process and all that it has started: Spark is a driver, Java and workers."""
    seen = seen_of(pid)
    if seen is not None:
        seen.cpu_s += seen.ended_s  # workers come and go
        for child in children_of(pid):
            if (below := tree_of(child)) is not None:
                seen.add(below)
    return seen


def children_of(pid: int) -> list[int]:
    """The processes that one has started; none if it is gone."""
    found: list[int] = []
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return found
    for task in tasks:
        with suppress(OSError):  # a thread that has ended meanwhile hides no other
            found += map(int, (task / "children").read_text().split())
    return found


def seen_of(pid: int) -> Seen | None:
    """A process now; None if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # What /proc counts from is when the machine was started.
    return Seen(stat, time.clock_gettime(time.CLOCK_BOOTTIME))
