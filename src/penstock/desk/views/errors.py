"""What the desk tells of tries that failed."""

from __future__ import annotations

import msgspec

from penstock.desk.views import View


class ErrorHead(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the error log without its traceback."""

    subscriber: str
    topic: str
    offset: int
    id: str | None
    tries: int
    kind: str
    message: str
    at_ms: int
    duration_s: float | None = None


class ErrorRow(View, frozen=True, kw_only=True):
    """A failed try. ``number`` is its place in the error log."""

    number: int
    at_ms: int
    subscriber: str
    topic: str
    offset: int
    id: str | None
    tries: int
    kind: str
    message: str
    duration_s: float | None


class ErrorView(ErrorRow, frozen=True, kw_only=True):
    traceback: str


class ErrorPage(View, frozen=True, kw_only=True):
    errors: list[ErrorRow]
    next: int | None


class ErrorGroup(View, frozen=True, kw_only=True):
    """Failed tries of one kind; ``example`` is the newest of them."""

    subscriber: str
    topic: str
    kind: str
    count: int
    first_ms: int
    last_ms: int
    example: int


class ErrorGroupPage(View, frozen=True, kw_only=True):
    groups: list[ErrorGroup]
    next: int | None
    end: int


class ErrorFilter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which failed tries; ``since_ms`` is included, ``until_ms`` is not."""

    subscriber: str | None = None
    topic: str | None = None
    id: str | None = None
    offset: int | None = None
    kind: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def takes(self, entry: ErrorHead) -> bool:
        return (
            self.subscriber in (None, entry.subscriber)
            and self.topic in (None, entry.topic)
            and self.id in (None, entry.id)
            and self.offset in (None, entry.offset)
            and self.kind in (None, entry.kind)
            and (self.since_ms is None or entry.at_ms >= self.since_ms)
            and (self.until_ms is None or entry.at_ms < self.until_ms)
        )
