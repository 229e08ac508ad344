"""What the desk tells of queries and their epochs."""

from __future__ import annotations

from penstock.desk.views import View


class Committed(View, frozen=True, kw_only=True):
    """An epoch that is stored. ``before``: it was already, and nothing was done.

    ``note`` is what the query has noted by now, perhaps with a later epoch.
    """

    committed: bool
    before: bool
    events: int
    note: str = ""


class Aborted(View, frozen=True, kw_only=True):
    dropped_bytes: int


class SinkRow(View, frozen=True, kw_only=True):
    query: str
    epoch: int | None
    """Committed last; None if none was."""
    at_ms: int | None
    events: int | None
    staged_epochs: int
    staged_bytes: int
    note: str = ""


class SinkPage(View, frozen=True, kw_only=True):
    sinks: list[SinkRow]
    more: bool
