"""What a subscription hands out and gets back: the words of delivery."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from penstock.delivery.pages import Page
from penstock.delivery.states import READY, OwedState
from penstock.model.failure import Failure
from penstock.model.policy import Exhausted

if TYPE_CHECKING:
    from penstock.delivery.consumer import Consumer
    from penstock.delivery.subscription import Subscription


# One is made for every delivery: a plain class with slots is the cheapest.
class Owed:
    """An event that was handed out and is not settled."""

    __slots__ = (
        "due_s",
        "holder",
        "level",
        "offset",
        "recorded",
        "state",
        "tries",
        "unsent",
    )

    def __init__(self, offset: int, level: int) -> None:
        self.offset = offset
        self.level = level
        self.state: OwedState = READY
        """Changed by ``OwedBook.move`` alone, once it is in a book."""
        self.tries = 0
        self.due_s = 0.0
        """When to act if nothing happens; 0 for never."""
        self.holder: Consumer | None = None
        self.unsent = False
        """Whether it was read past, and may still expire."""
        self.recorded = False
        """Whether the journal has heard of it."""


class JournalNotes:
    """What subscriptions have to say to the journal, shared by all of them."""

    __slots__ = ("dirty", "sync", "urgent")

    def __init__(self) -> None:
        self.dirty: dict[Subscription, None] = {}
        """Those that have changed."""
        self.urgent = False
        """Whether a client waits for it to be written."""
        self.sync = False
        """Whether it has to be synced."""

    def clear(self) -> None:
        self.dirty.clear()
        self.urgent = self.sync = False


@dataclass(slots=True)
class Portion:
    """Events ``lo`` to ``hi`` of a page, to be sent; the try this is."""

    page: Page
    lo: int
    hi: int
    tries: int

    @property
    def size(self) -> int:
        """About how many bytes its events have."""
        return (self.hi - self.lo) * self.page.event_bytes


class Payer(Protocol):
    """On whose account something is written."""

    def charge(self, events: int, size: int) -> None:
        """So much was written."""

    def wait_s(self) -> float:
        """How long it is in debt."""


@dataclass(slots=True)
class Failed:
    """An event whose try has failed, and what is to be done beyond trying again."""

    offset: int
    tries: int
    errors: list[Failure]
    """Of its tries so far, the newest last."""
    then: Exhausted | None
    level: int
    amended: bytes | None = None
    """The frame that was sent in place of the stored event."""
    payer: Payer | None = None
    """Of whom the consumer was that had it."""


@dataclass(slots=True)
class Overdue:
    """What ran out of time, by what is to be done with it."""

    failed: list[Failed]
    released: list[Owed]
    """PUBREL is to be sent again."""
