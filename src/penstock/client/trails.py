"""Plans for what was done and what failed: the audit trail and the error log.

Sending many letters again slowly leaves an entry for every few of them. What one person
did in one go is shown as one.
"""

from __future__ import annotations

import msgspec

from penstock.client.plan import MAX_ROWS, Plan, first_rows, question
from penstock.desk.views.audit import AuditFilter, AuditPage, AuditRow
from penstock.desk.views.errors import ErrorFilter, ErrorPage, ErrorRow

# Entries that are looked at, if not more are asked for: one go may have any number.
MAX_ENTRIES = 10_000
# Between entries of one go.
PAUSE_MS = 60_000


def audit(
    filter: AuditFilter | None = None, *, count: int = 100
) -> Plan[list[AuditRow]]:
    """Who did what with dead letters, the newest first; at most ``count`` rows.

    Entries of one go are one row: when it began, and all the numbers.
    """
    found = _Goes()
    before: int | None = None
    left = max(count, MAX_ENTRIES)
    while len(found) <= count and left > 0:
        page = yield from question(
            AuditPage,
            "dead-letters.audit",
            filter=filter,
            before=before,
            limit=min(left, MAX_ROWS),
        )
        left -= len(page.entries)
        for entry in page.entries:
            found.add(entry)
        before = page.next
        if before is None:
            break
    return found.rows()[:count]


def errors(
    filter: ErrorFilter | None = None,
    *,
    count: int = 100,
    oldest_first: bool = False,
) -> Plan[list[ErrorRow]]:
    """Failed tries, the newest first unless said otherwise."""
    return first_rows(
        ErrorPage,
        "errors",
        lambda page: page.errors,
        count=count,
        filter=filter,
        oldest_first=oldest_first,
    )


class _Goes:
    """Entries, the newest first, those of one go together."""

    def __init__(self) -> None:
        self._goes: list[list[AuditRow]] = []
        self._last: dict[tuple[object, ...], list[AuditRow]] = {}

    def __len__(self) -> int:
        return len(self._goes)

    def add(self, row: AuditRow) -> None:
        key = (row.by, row.action, row.subscriber, row.topic, row.reason)
        last = self._last.get(key)
        if (
            last is not None
            and row.action != "edited"
            and last[-1].at_ms - row.at_ms <= PAUSE_MS
        ):
            last.append(row)
            return
        self._last[key] = go = [row]
        self._goes.append(go)

    def rows(self) -> list[AuditRow]:
        return [_joined(go) for go in self._goes]


def _joined(go: list[AuditRow]) -> AuditRow:
    if len(go) == 1:
        return go[0]
    numbers = [number for row in reversed(go) for number in row.numbers]
    return msgspec.structs.replace(go[-1], numbers=numbers)
