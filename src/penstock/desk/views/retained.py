"""What the desk tells of retained messages."""

from __future__ import annotations

from penstock.desk.views import View


class RetainedRow(View, frozen=True, kw_only=True):
    """A retained message; after ``expires_ms`` no subscriber gets it any more."""

    topic: str
    bytes: int
    published_ms: int
    qos: int
    expires_ms: int | None


class RetainedPage(View, frozen=True, kw_only=True):
    """``count`` is how many there are in all, of any topic."""

    retained: list[RetainedRow]
    count: int
    more: bool


class RetainedView(RetainedRow, frozen=True, kw_only=True):
    payload: bytes
    headers: dict[str, str]
    priority: int
    producer: str | None
