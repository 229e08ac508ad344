"""What the desk tells of subscriptions: where they stand, and what they owe."""

from __future__ import annotations

from typing import Literal

from penstock.desk.views import View

State = Literal["connected", "away", "unsubscribed", "suspended"]


class SubscriptionRow(View, frozen=True, kw_only=True):
    """``position`` is the lowest offset not settled, ``lag`` how many are not.

    ``in_flight`` are with a consumer, ``owed`` also wait to be sent again, ``delayed``
    wait for their time. ``expired`` were never sent.
    """

    number: int
    subscriber: str
    topic: str
    state: State
    temporary: bool
    position: int
    lag: int
    in_flight: int
    owed: int
    consumers: int
    delayed: int = 0
    expired: int = 0


class SubscriptionPage(View, frozen=True, kw_only=True):
    subscriptions: list[SubscriptionRow]
    more: bool


class OwedRow(View, frozen=True, kw_only=True):
    offset: int
    priority: int | None
    """None: not looked at in log order."""
    tries: int
    stage: str
    due_ms: int | None
    errors: list[str]


class SubscriptionView(SubscriptionRow, frozen=True, kw_only=True):
    """With its policy: from ``backoff_s`` on, the pause before an event that failed is
    sent again, its growth, its end, and the part of it by which events are spread."""

    order: str
    window: int
    qos: int
    ack_timeout_s: float | None
    tries: int | None
    exhausted: str
    deliveries: list[OwedRow]
    more_deliveries: bool
    # None: an older server does not tell.
    backoff_s: float | None = None
    backoff_factor: float | None = None
    max_backoff_s: float | None = None
    jitter: float | None = None


class MovedSubscription(View, frozen=True, kw_only=True):
    """A subscription that was moved."""

    subscriber: str
    topic: str
    position: int
