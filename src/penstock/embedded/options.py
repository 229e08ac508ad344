"""How a handler is run, all with defaults that work."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from math import inf
from typing import Literal

from penstock.broker.starts import accepted_start
from penstock.errors import InvalidOption
from penstock.model.policy import (
    MAX_WINDOW,
    RETRY,
    Policy,
    Retry,
    RetrySettings,
    settings_in,
)
from penstock.model.policy import Order as PolicyOrder

HandlerOrder = Literal["parallel", "key", "strict", "priority"]

MAX_CONCURRENCY = 1000
MAX_BATCH = 100_000
# Events at hand, running or about to: what a window has to hold.
MAX_AT_HAND = 4096
# Settings of retry that are numbers with a fraction.
_NUMBERS = tuple(one.name for one in fields(Retry) if isinstance(one.default, float))


class HandlerSettings(RetrySettings, total=False):
    """What may be said of a handler; see HandlerOptions."""

    start: str | int
    concurrency: int
    timeout_s: float
    tries: int
    order: HandlerOrder
    keys: Collection[bytes] | None
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerOptions(Retry):
    """The options of one handler.

    start: where a new subscription begins: ``earliest`` replays the whole topic, then
        ``latest``, an offset, or ``time:<milliseconds>``.
    concurrency: how many events are handled at once, at most.
    timeout_s: the time of one try.
    tries: how often an event is tried; then it is a dead letter.
    backoff_s, backoff_factor, max_backoff_s: pause before the second try, its growth.
    jitter: the part of a pause, from 0 to 1, by which events are spread: it shortens
        the pause by up to so much, for an event and its try always alike.
    order: ``parallel`` as they come; ``key`` one after the other where the key is the
        same, in all processes together, and those without a key as they come;
        ``strict`` one after the other, in one process; ``priority`` the highest first.
    keys: only events with one of these keys.
    headers: only events that have all of these headers, with these values.
    batch: events in one call; 0 is one by one.
    """

    start: str | int = "earliest"
    concurrency: int = 16
    timeout_s: float = 5.0
    tries: int = 5
    backoff_s: float = 0.5
    max_backoff_s: float = 60.0
    jitter: float = 0.2
    order: HandlerOrder = "parallel"
    keys: Collection[bytes] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    batch: int = 0

    def __post_init__(self) -> None:
        if self.order not in ("parallel", "key", "strict", "priority"):
            limit = "'parallel', 'key', 'strict' or 'priority'"
            raise InvalidOption("order", self.order, limit)
        _check_whole("concurrency", self.concurrency, 1, MAX_CONCURRENCY)
        if not (_is_number(self.timeout_s) and 0 < self.timeout_s < inf):
            raise InvalidOption("timeout_s", self.timeout_s, "more than 0")
        _check_whole("tries", self.tries, 1, None)
        _check_whole("batch", self.batch, 0, MAX_BATCH)
        for name in _NUMBERS:
            if not _is_number(value := getattr(self, name)):
                raise InvalidOption(name, value, "a number")
        _check_start(self.start)
        if self.batch and self.order in ("key", "strict"):
            limit = "'parallel' or 'priority' for a handler of batches"
            raise InvalidOption("order", self.order, limit)
        # Copies: a caller that changes what was given does not change the handler.
        object.__setattr__(self, "keys", _accepted_keys(self.keys))
        object.__setattr__(self, "headers", _accepted_headers(self.headers))
        self.policy(1)  # which checks the others

    @property
    def ordered(self) -> bool:
        """Whether events may have to wait for others."""
        return self.order in ("key", "strict")

    @property
    def filtered(self) -> bool:
        return self.keys is not None or bool(self.headers)

    def takes(self, key: bytes | None, headers: Mapping[str, str]) -> bool:
        """Whether the filter lets an event through."""
        if self.keys is not None and key not in self.keys:
            return False
        return all(headers.get(name) == value for name, value in self.headers.items())

    @property
    def window(self) -> int:
        """What the subscription may have on its way, to all who consume it."""
        return max(MAX_AT_HAND, min(2 * self.batch, MAX_WINDOW))

    def policy(self, window: int) -> Policy:
        """The rules of the subscription."""
        return Policy(
            order=_ORDERS[self.order],
            window=window,
            in_order=self.ordered,
            **settings_in(self, RETRY),
        )


_ORDERS: dict[HandlerOrder, PolicyOrder] = {
    "parallel": "log",
    "key": "key",
    "strict": "log",
    "priority": "priority",
}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_whole(name: str, value: object, least: int, most: int | None) -> None:
    limit = f"at least {least}" if most is None else f"from {least} to {most}"
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidOption(name, value, f"a whole number, {limit}")
    if value < least or (most is not None and value > most):
        raise InvalidOption(name, value, limit)


def _check_start(start: object) -> None:
    if not isinstance(start, str | int) or isinstance(start, bool):
        raise InvalidOption("start", start, "a word or an offset")
    accepted_start(start)


# What follows takes anything: a program need not have been type-checked.


def _accepted_keys(keys: object) -> frozenset[bytes] | None:
    """Keys are bytes: text would be no event's key, and nothing would be handled."""
    if keys is None:
        return None
    if isinstance(keys, bytes | str) or not isinstance(keys, Collection):
        raise InvalidOption("keys", keys, "a collection of keys")
    for key in keys:
        if not isinstance(key, bytes):
            raise InvalidOption("keys", keys, f"keys of bytes, which {key!r} is not")
    return frozenset(keys)


def _accepted_headers(headers: object) -> dict[str, str]:
    if not isinstance(headers, Mapping):
        raise InvalidOption("headers", headers, "a mapping of text to text")
    for pair in headers.items():
        if not all(isinstance(one, str) for one in pair):
            raise InvalidOption("headers", headers, "a mapping of text to text")
    return dict(headers)
