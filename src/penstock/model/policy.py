"""How a subscription treats its events: order, window, retries, the end of patience."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.errors import InvalidOption

Order = Literal["priority", "log", "key"]
Exhausted = Literal["dead-letter", "suspend"]

# A window costs memory for every event in it.
MAX_WINDOW = 100_000
# Beyond all patience, and still numbers that the journal and the clock can carry.
MAX_TRIES = 1 << 32
MAX_S = 1e15
MAX_FACTOR = 1e4


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules of one subscription, stored with it.

    order: ``priority`` sends the highest priority first over the whole backlog,
        ``log`` sends events as they were published, ``key`` as well, but those of one
        key to one consumer at a time, see delivery/key_order.py. ``priority`` never
        changes; the other two do while there is no consumer.
    window: how many unsettled deliveries there may be at once.
    ack_timeout_s: a delivery not settled by then is tried again; None waits for ever.
    tries: how often an event is sent at most; None has no limit.
    backoff_s, backoff_factor, max_backoff_s: pause before a second try, its growth.
    jitter: the part of a pause, from 0 to 1, by which events are spread: those that
        failed together are not tried together again.
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
    tries: int | None = None
    backoff_s: float = 0.0
    backoff_factor: float = 2.0
    max_backoff_s: float = 300.0
    exhausted: Exhausted = "dead-letter"
    qos: Literal[0, 1, 2] = 1
    release_tries: int = 5
    release_interval_s: float = 10.0
    jitter: float = 0.0
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
