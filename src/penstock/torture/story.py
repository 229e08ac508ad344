"""A run of ``penstock torture``: chapters on a disk, and chapters that lose power.

Each chapter has a server or broker of its own, clients of every kind at work, and an
accident a round. After each accident all that clients were told is compared with what
is stored; at the end of a chapter every consumer has to have everything, once.
"""

from __future__ import annotations

import shutil
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from penstock.torture.on_disk import OnDisk
from penstock.torture.on_power import OnPower
from penstock.torture.promise import PromiseBroken
from penstock.torture.report import Report, file_system
from penstock.torture.scene import Scene

# Accidents of a chapter: all that is stored is read after each of them.
DISK_ROUNDS = 20
POWER_ROUNDS = 6
# Promises from one accident to the next.
DISK_FACTS = (1, 20, 200, 600, 1200)
POWER_FACTS = (1, 20, 100, 300)


class Story:
    """``tell`` hears how far it has come, after every accident."""

    def __init__(
        self,
        directory: Path,
        seed: int,
        seconds: float,
        tell: Callable[[Report], None],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.report = Report(seed, file_system(directory))
        self._directory = directory
        self._tell = tell
        self._clock = clock
        self._began_s = clock()
        self._until_s = self._began_s + seconds

    def run(self) -> Report:
        """Go on until the time is over, or a promise is broken."""
        number = 0
        while self.report.broken is None and (number < 2 or not self.over):
            chapter = self.on_disk if number % 2 else self.on_power
            try:
                chapter(number)
            except PromiseBroken as error:
                self.report.broken = str(error)
            except Exception as error:  # it fell over something that it never expects
                trace = "".join(traceback.format_exception(error)[-3:])
                self.report.broken = f"{error!r}\n{trace}"
            number += 1
        self.report.seconds = self._clock() - self._began_s
        self.report.whole = True
        return self.report

    @property
    def over(self) -> bool:
        return self._clock() >= self._until_s

    def tell(self) -> None:
        self.report.seconds = self._clock() - self._began_s
        self._tell(self.report)

    # Chapters

    def on_power(self, number: int) -> None:
        """All of it follows from the seed."""
        self.report.brokers += 1
        random = Random(f"{self.report.seed}/{number}")
        world, scene = OnPower(random), Scene(random, http=False, max_lag=60)
        where = f"chapter {number}, on power"
        chapter = Chapter(self, scene, where, self.report.on_power)
        scene.begin(world)
        for _ in range(POWER_ROUNDS):
            scene.work(world, random.choice(POWER_FACTS))
            if random.random() < 0.3:
                chapter.meets("disk full")
                world.fill_disk()
            chapter.meets("power cut")
            world.cut_power()
            scene.look(world)
        scene.end(world, world.cut_power)
        chapter.tell()

    def on_disk(self, number: int) -> None:
        """All kinds of accidents at least once, however little time is left."""
        self.report.servers += 1
        random = Random(f"{self.report.seed}/{number}")
        folder = self._directory / str(number)
        scene, where = Scene(random), f"chapter {number}, on disk"
        chapter = Chapter(self, scene, where, self.report.on_disk)
        self.report.kept = folder  # unless it ends well
        world = OnDisk(folder, random, chapter.tell)
        accidents: dict[str, Callable[[], None]] = {
            "killed": world.kill,
            "power cut": world.cut_power,
            "killed in a write": world.tear_tail,
            "stopped": world.stop,
            "clock set": world.step_clock,
            "disk full": lambda: world.fill_disk(lambda: scene.refusals),
            "bit flipped": world.flip_bit,
        }
        names = random.sample(list(accidents), len(accidents))
        names += random.choices(names, k=DISK_ROUNDS - len(names))
        try:
            scene.begin(world)
            for count, name in enumerate(names, 1):
                scene.work(world, random.choice(DISK_FACTS))
                chapter.meets(name)
                accidents[name]()
                scene.look(world)
                if self.over and count >= len(accidents):
                    break
            scene.end(world, world.cut_power)
            world.close()
        finally:
            world.abandon()
        chapter.tell()
        self.report.kept = None
        shutil.rmtree(folder)


class Chapter:
    """What happens in a chapter, for the report."""

    def __init__(
        self, story: Story, scene: Scene, where: str, counts: Counter[str]
    ) -> None:
        self._story = story
        self._scene = scene
        self._where = where
        self._counts = counts
        self._names: list[str] = []
        self._had = 0, 0
        story.report.where = where

    def meets(self, accident: str) -> None:
        """An accident is about to happen."""
        self._counts[accident] += 1
        self._names.append(accident)
        self._story.report.where = f"{self._where}: {', '.join(self._names)}"
        self.tell()

    def tell(self) -> None:
        report, (promises, refusals) = self._story.report, self._had
        self._had = self._scene.facts, self._scene.refusals
        report.promises += self._had[0] - promises
        report.refusals += self._had[1] - refusals
        self._story.tell()
