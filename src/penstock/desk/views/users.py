"""What the desk tells of users: what they have of what they may have."""

from __future__ import annotations

from penstock.desk.views import View


class UsageRow(View, frozen=True, kw_only=True):
    """What a user has. ``limits`` are what it may have at most, where that is limited.

    ``wait_s``: how long it has to wait now before it may publish more.
    """

    user: str
    connections: int
    topics: int
    subscriptions: int
    stored_bytes: int
    wait_s: float
    limits: dict[str, int]


class UsagePage(View, frozen=True, kw_only=True):
    users: list[UsageRow]
    more: bool
