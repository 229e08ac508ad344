"""How things are measured here: contenders take turns, and the median counts.

Machines are noisy and get slower or faster while they run, so a rate is only worth
something beside another one of the same minute. All contenders of a case run once
and are forgotten (first touch of memory, cold caches), then they take turns.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Sample:
    """One run of one contender."""

    events: int
    bytes: int
    seconds: float
    cpu_s: float
    facts: dict[str, float] = field(default_factory=dict)

    @property
    def events_per_s(self) -> float:
        return self.events / self.seconds

    @property
    def mib_per_s(self) -> float:
        return self.bytes / MIB / self.seconds

    @property
    def cpu_s_per_million(self) -> float:
        return self.cpu_s * 1e6 / self.events


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table."""

    benchmark: str
    case: str
    contender: str
    rate: str
    cpu_s_per_million: float | None = None
    ratio: str = ""
    target: str = ""
    met: bool | None = None


@dataclass(frozen=True, kw_only=True)
class Settings:
    directory: Path
    quick: bool

    def scaled(self, amount: int) -> int:
        return max(amount // 10, 1) if self.quick else amount

    @property
    def rounds(self) -> int:
        return 3


Contender = Callable[[], Sample]


class Stopwatch:
    """Wall time and CPU time of this process, threads included."""

    def __init__(self) -> None:
        self._wall = time.perf_counter()
        self._cpu = time.process_time()

    def stop(self, events: int, size: int, **facts: float) -> Sample:
        return Sample(
            events=events,
            bytes=size,
            seconds=time.perf_counter() - self._wall,
            cpu_s=time.process_time() - self._cpu,
            facts=facts,
        )


def take_turns(
    contenders: Mapping[str, Contender], rounds: int, *, warm_up: bool = True
) -> dict[str, Sample]:
    """The median sample of each contender over some rounds."""
    samples: dict[str, list[Sample]] = {name: [] for name in contenders}
    if warm_up:
        for run in contenders.values():
            run()
    for _ in range(rounds):
        for name, run in contenders.items():
            samples[name].append(run())
    return {name: _median(taken) for name, taken in samples.items()}


@contextmanager
def scratch(parent: Path) -> Iterator[Path]:
    """A directory on the same disk that is gone afterwards."""
    path = Path(tempfile.mkdtemp(dir=parent))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def payloads(count: int, size: int) -> list[bytes]:
    """Events that differ, so that nothing is stored as a constant."""
    return [(b"%012d" % number).ljust(size, b".") for number in range(count)]


def _median(samples: list[Sample]) -> Sample:
    middle = statistics.median_low([sample.seconds for sample in samples])
    return next(sample for sample in samples if sample.seconds == middle)
