"""What recovery and reads found wrong, and the quarantine where damaged bytes go.

A *cut* is a torn tail: bytes that were never confirmed and are gone. *Damage* is
worse: bytes that were once on disk and no longer pass their checksum. Damaged bytes
are copied to ``quarantine/`` with a report beside them, the range is left out of
reads, and everything around it stays readable.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

from penstock.files import FileSystem, replace_file
from penstock.log.layout import Layout

logger = logging.getLogger(__name__)

# A larger range is quarantined by its first bytes: enough to look into it.
MAX_QUARANTINED_BYTES = 1 << 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A torn tail that was removed: file, position in it, bytes."""

    file: str
    position: int
    length: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: cut {self.length} bytes at {self.position}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A range that was on disk and is not readable any more."""

    file: str
    position: int
    length: int
    reason: str
    topic: str | None = None
    first_offset: int | None = None
    end_offset: int | None = None

    def __str__(self) -> str:
        text = f"{self.file}: {self.length} bytes at {self.position}: {self.reason}"
        if self.topic is None:
            return text
        return f"{text} (topic {self.topic}, offsets {self._offsets()})"

    def _offsets(self) -> str:
        end = "?" if self.end_offset is None else self.end_offset - 1
        return f"{self.first_offset}..{end}"


@dataclass(slots=True, kw_only=True)
class RecoveryReport:
    """What opening a data directory found and did."""

    checkpoint_position: int = 0
    end_position: int = 0
    groups: int = 0
    journal_bytes: int = 0
    records: int = 0
    cuts: list[Cut] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)


class DamageRegister:
    """Every damaged range once: reported, and its bytes kept aside."""

    def __init__(self, files: FileSystem, layout: Layout) -> None:
        self._files = files
        self._layout = layout
        self._known: dict[tuple[str, int], Damage] = {}

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Damage]:
        return iter(list(self._known.values()))

    def add(self, damage: Damage) -> bool:
        """Register, report and quarantine; False if it was known already."""
        place = (damage.file, damage.position)
        if place in self._known:
            return False
        self._known[place] = damage
        logger.warning(
            "damaged range quarantined: %s",
            damage,
            extra={"action": "range_quarantined", "file": damage.file},
        )
        self._keep_aside(damage)
        return True

    def _keep_aside(self, damage: Damage) -> None:
        name = damage.file.replace(os.sep, "_")
        base = os.path.join(self._layout.quarantine, f"{name}@{damage.position}")
        if self._files.exists(base + ".json"):
            return
        try:
            self._files.make_directory(self._layout.quarantine)
            if damage.length:
                replace_file(self._files, base + ".bin", self._bytes_of(damage))
            replace_file(self._files, base + ".json", msgspec.json.encode(damage))
        except OSError as error:
            logger.error(
                "quarantine copy failed: %s",
                error,
                extra={"action": "quarantine_failed", "file": damage.file},
            )

    def _bytes_of(self, damage: Damage) -> bytes:
        path = os.path.join(self._layout.directory, damage.file)
        if not self._files.exists(path):
            return b""
        handle = self._files.open(path)
        try:
            length = min(damage.length, MAX_QUARANTINED_BYTES)
            return self._files.read(handle, length, damage.position)
        finally:
            self._files.close(handle)
