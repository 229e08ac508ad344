"""What the desk tells of events that subscribers have not settled."""

from __future__ import annotations

from penstock.desk.views import View


class LogEvent(View, frozen=True, kw_only=True):
    timestamp: int
    priority: int
    msg: bytes
    id: str


class SubscriberLog(View, frozen=True, kw_only=True):
    """Events a subscriber has not settled, highest priority first.

    ``unsettled`` is how many there are; ``cut`` says that not all of them are here.
    """

    subscriber: str
    unsettled: int
    cut: bool
    events: list[LogEvent]


class LogPage(View, frozen=True, kw_only=True):
    subscribers: list[SubscriberLog]
    more: bool
