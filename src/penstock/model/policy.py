"""How a subscription treats its events: order, window, retries, the end of patience.

A setting of retry is a field of ``Retry`` and, so that callers are checked, of
``RetrySettings``. Clients, handlers and gateways hand on what is listed here. What
writes bytes (the native messages, the JSON of HTTP and of the desk) is explicit and
versioned, and ``tests/test_settings.py`` fails for each of them that lacks a setting.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, TypedDict

from penstock.errors import InvalidOption

Order = Literal["priority", "log", "key"]
Exhausted = Literal["dead-letter", "suspend"]

# A window costs memory for every event in it.
MAX_WINDOW = 100_000
# Beyond all patience, and still numbers that the journal and the clock can carry.
MAX_TRIES = 1 << 32
MAX_S = 1e15
MAX_FACTOR = 1e4


class RetrySettings(TypedDict, total=False):
    """What a subscriber may say of Retry; and ``tries``, each in its own way."""

    backoff_s: float
    backoff_factor: float
    max_backoff_s: float
    jitter: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How an event is tried again; its limits are those of a policy.

    tries: how often an event is sent at most; None has no limit.
    backoff_s, backoff_factor, max_backoff_s: pause before a second try, its growth.
    jitter: the part of a pause, from 0 to 1, by which events are spread: those that
        failed together are not tried together again.
    """

    tries: int | None = None
    backoff_s: float = 0.0
    backoff_factor: float = 2.0
    max_backoff_s: float = 300.0
    jitter: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy(Retry):
    """The rules of one subscription, stored with it; see Retry as well.

    order: ``priority`` sends the highest priority first over the whole backlog,
        ``log`` sends events as they were published, ``key`` as well, but those of one
        key to one consumer at a time, see delivery/key_order.py. ``priority`` never
        changes; the other two do while there is no consumer.
    window: how many unsettled deliveries there may be at once.
    ack_timeout_s: a delivery not settled by then is tried again; None waits for ever.
    in_order: whether events may not overtake one that is sent alone, see
        delivery/isolation.py; its consumer keeps those behind it.
    exhausted: what follows the last try.
    qos: 0 settles on sending, 1 on an acknowledgement, 2 on a handshake.
    release_tries, release_interval_s: how often the second half of a QoS 2 handshake
        is sent before the event counts as received.
    """

    order: Order = "log"
    window: int = 1
    ack_timeout_s: float | None = None
    exhausted: Exhausted = "dead-letter"
    qos: Literal[0, 1, 2] = 1
    release_tries: int = 5
    release_interval_s: float = 10.0
    in_order: bool = False

    def __post_init__(self) -> None:
        if self.order not in ("priority", "log", "key"):
            raise InvalidOption("order", self.order, "'priority', 'log' or 'key'")
        if self.exhausted not in ("dead-letter", "suspend"):
            limit = "'dead-letter' or 'suspend'"
            raise InvalidOption("exhausted", self.exhausted, limit)
        if self.qos not in (0, 1, 2):
            raise InvalidOption("qos", self.qos, "0, 1 or 2")
        if not 1 <= self.window <= MAX_WINDOW:
            raise InvalidOption("window", self.window, f"from 1 to {MAX_WINDOW}")
        if self.tries is not None and not 1 <= self.tries <= MAX_TRIES:
            limit = f"from 1 to {MAX_TRIES}, or left out"
            raise InvalidOption("tries", self.tries, limit)
        if self.ack_timeout_s is not None and not 0 < self.ack_timeout_s <= MAX_S:
            limit = f"more than 0, at most {MAX_S:g}, or left out"
            raise InvalidOption("ack_timeout_s", self.ack_timeout_s, limit)
        for name in ("backoff_s", "backoff_factor", "max_backoff_s"):
            value = getattr(self, name)
            most = MAX_FACTOR if name == "backoff_factor" else MAX_S
            if not 0 <= value <= most:
                raise InvalidOption(name, value, f"from 0 to {most:g}")
        if not 0 <= self.jitter <= 1:
            raise InvalidOption("jitter", self.jitter, "from 0 to 1")

    @property
    def for_one(self) -> bool:
        """Whether it has one consumer at a time."""
        return self.in_order and self.order != "key"

    @property
    def counts_losses(self) -> bool:
        """Whether a try without an answer, because its consumer went away, is a failed
        one: so it is where tries are counted and end in a dead letter."""
        return self.tries is not None and self.exhausted == "dead-letter"


RETRY = tuple(one.name for one in fields(Retry))
POLICY = tuple(one.name for one in fields(Policy))


def settings_in(source: object, names: Iterable[str]) -> dict[str, Any]:
    """The settings of these names, to be handed on."""
    # Any: the value of whichever setting.
    return {name: getattr(source, name) for name in names}
