"""What the desk tells of the audit trail: who did what with which dead letters."""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.desk.views import View

AuditAction = Literal["republished", "edited", "dropped"]


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One act on letters of one subscription.

    ``old`` and ``new`` are the payloads of an edit, or their beginnings: ``cut``.
    """

    at_ms: int
    by: str
    action: AuditAction
    numbers: list[int]
    subscriber: str | None = None
    topic: str | None = None
    reason: str = ""
    old: bytes | None = None
    new: bytes | None = None
    cut: bool = False


class AuditRow(View, frozen=True, kw_only=True):
    """An entry and its place in the trail."""

    entry: int
    at_ms: int
    by: str
    action: AuditAction
    numbers: list[int]
    subscriber: str | None
    topic: str | None
    reason: str
    old: bytes | None
    new: bytes | None
    cut: bool


class AuditPage(View, frozen=True, kw_only=True):
    entries: list[AuditRow]
    next: int | None


class AuditFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which entries; ``number`` is that of a letter."""

    by: str | None = None
    action: AuditAction | None = None
    subscriber: str | None = None
    topic: str | None = None
    number: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def takes(self, entry: AuditEntry) -> bool:
        return (
            self.by in (None, entry.by)
            and self.action in (None, entry.action)
            and self.subscriber in (None, entry.subscriber)
            and self.topic in (None, entry.topic)
            and (self.since_ms is None or entry.at_ms >= self.since_ms)
            and (self.until_ms is None or entry.at_ms < self.until_ms)
            and (self.number is None or self.number in entry.numbers)
        )
