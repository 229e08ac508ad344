"""What a verification has looked at so far, and the damage it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.log.damage import Damage
from penstock.log.topic import TopicLog

OnBytes = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyResult:
    """What was looked at, and what was wrong with it.

    ``frames`` and ``events`` are those of the topics, in segments or in the journal.
    """

    damages: list[Damage] = field(default_factory=list)
    files: int = 0
    bytes: int = 0
    frames: int = 0
    events: int = 0


class Tally:
    """Damage, each place once, and what was looked at."""

    def __init__(self, progress: OnBytes) -> None:
        self._progress = progress
        self._damages: dict[tuple[str, int], Damage] = {}
        self._files: set[str] = set()
        self._bytes = 0
        self._frames = 0
        self._events = 0

    def note(self, damage: Damage) -> None:
        self._damages.setdefault(place_of(damage), damage)

    def note_hole(self, topic: TopicLog, file: str, first: int, end: int) -> None:
        """Offsets that are nowhere, unless known damage accounts for them."""
        if first < end and not self._explained(topic.name, first, end):
            self.note(
                Damage(
                    file=file,
                    position=first,
                    length=0,
                    reason="offsets are missing",
                    topic=topic.name,
                    first_offset=first,
                    end_offset=end,
                )
            )

    def _explained(self, topic: str, first: int, end: int) -> bool:
        return any(
            damage.topic == topic
            and damage.first_offset is not None
            and damage.first_offset <= first
            and (damage.end_offset is None or damage.end_offset >= end)
            for damage in self._damages.values()
        )

    def looked_at(self, file: str, length: int) -> None:
        self._files.add(file)
        self._bytes += length
        self._progress(length)

    def count(self, events: int) -> None:
        """Count a frame by the events of it that were not trimmed."""
        self._frames += events > 0
        self._events += events

    def result(self) -> VerifyResult:
        return VerifyResult(
            damages=list(self._damages.values()),
            files=len(self._files),
            bytes=self._bytes,
            frames=self._frames,
            events=self._events,
        )


def place_of(damage: Damage) -> tuple[str, int]:
    return damage.file, damage.position
