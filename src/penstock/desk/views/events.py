"""What the desk tells of single events: what became of them, and where they are."""

from __future__ import annotations

from typing import Literal

from penstock.desk.views import View

DeliveryState = Literal[
    "settled", "in flight", "waiting", "not yet", "dead letter", "before"
]


class EventView(View, frozen=True, kw_only=True):
    offset: int
    id: str
    timestamp: int
    priority: int
    key: bytes | None
    headers: dict[str, str]
    parent: str | None
    producer: str | None
    payload: bytes
    expires: int | None = None
    not_before: int | None = None


class TryRow(View, frozen=True, kw_only=True):
    """A try that failed; ``duration_s`` is None where it was not measured."""

    tries: int
    at_ms: int
    duration_s: float | None
    kind: str
    message: str
    traceback: str


class DeliveryRow(View, frozen=True, kw_only=True):
    """What became of an event in one subscription.

    ``before``: it was there before the subscription began. ``waiting``: to be sent
    again, at ``due_ms`` if that is known. ``letter``: the number of its dead letter.
    """

    subscriber: str
    temporary: bool
    state: DeliveryState
    tries: int
    due_ms: int | None
    errors: list[TryRow]
    letter: int | None


class TopicEventView(EventView, frozen=True, kw_only=True):
    """An event with the topic it is in."""

    topic: str


class EventDetail(View, frozen=True, kw_only=True):
    """An event, and what became of it.

    ``more_deliveries``: there are more subscriptions than are told. ``letters_cut``:
    not all dead letters were searched, so that a settled one may be one.
    """

    event: TopicEventView
    deliveries: list[DeliveryRow]
    more_deliveries: bool
    letters_cut: bool


class EventMatches(View, frozen=True, kw_only=True):
    """Events with an id; ``next``: ask again with it, alone, for what is left.

    ``behind``: so many offsets are not indexed yet; ``cut``: there are more.
    """

    events: list[TopicEventView]
    next: int | None
    behind: int
    cut: bool
