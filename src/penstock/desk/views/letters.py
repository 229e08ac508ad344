"""What the desk tells of dead letters beyond a row: groups, tries, history."""

from __future__ import annotations

from typing import Literal

from penstock.desk.audit import AuditRow
from penstock.desk.views.rows import EventView, LetterRow, View


class TryRow(View, frozen=True, kw_only=True):
    """A try that failed; ``duration_s`` is None where nobody measured it."""

    tries: int
    at_ms: int
    duration_s: float | None
    kind: str
    message: str
    traceback: str


class LetterView(LetterRow, frozen=True, kw_only=True):
    """``raw`` is whole; ``event`` is None if there is none, or none any more.

    ``event_from`` says where it is: in its topic, or only here. ``errors`` has a line
    for each of the failures. ``history_cut``: not all of the audit trail was searched.
    """

    pattern: str
    errors: list[str]
    failures: list[TryRow]
    event: EventView | None
    event_from: Literal["log", "letter"] | None
    history: list[AuditRow]
    history_cut: bool


class GroupRow(View, frozen=True, kw_only=True):
    """Open letters that are alike; ``example`` is the newest of them."""

    subscriber: str | None
    topic: str | None
    gateway: str
    kind: str | None
    pattern: str
    count: int
    first_ms: int
    last_ms: int
    first: int
    example: int


class GroupPage(View, frozen=True, kw_only=True):
    groups: list[GroupRow]
    next: int | None
    end: int
