"""A consumer of the broker that a coroutine takes events from.

The broker wakes it once a turn, whatever the turn brought; the coroutine then takes
what its reader has room for. Not asking is all there is to back-pressure: what is
not taken stays in the log.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from penstock.access.peer import Peer
from penstock.delivery.consumer import Consumer
from penstock.delivery.owed import Owed, Portion
from penstock.delivery.subscription import Subscription
from penstock.http.notifier import Notifier

if TYPE_CHECKING:
    from penstock.http.house import House

# Events that are asked for at once; the window and the bytes limit it first.
MANY = 1 << 20

_numbers = count(1)


def temporary_name() -> str:
    """A subscriber for a client that gives no name; it is gone with its connection."""
    return f"$http-{next(_numbers)}"


class StreamConsumer:
    """Attached from the beginning until ``close``."""

    def __init__(
        self, house: House, subscription: Subscription, address: str = ""
    ) -> None:
        self.notifier = Notifier()
        self.ended_by: str | None = None
        """Why the broker has ended the subscription."""
        self.moves = 0
        """How often the subscription was moved: what was taken before is void."""
        self.subscription = subscription
        now_s = house.promises.now_s()
        self.peer = Peer("http", now_s, address, subscription.subscriber)
        self._house = house
        self.attached: Consumer = house.broker.attach(subscription, self)
        house.promises.members[self] = self
        house.promises.kick()

    def take(self, limit: int = MANY) -> list[Portion]:
        """Events to be sent now, within the window."""
        if self.ended_by is not None:
            return []
        promises = self._house.promises
        taken = self._house.broker.take(self.attached, promises.now_s(), limit)
        if taken:
            promises.kick()  # the counting of tries is to be written, some time
        return taken

    def settle(self, offsets: list[int]) -> int:
        """Finish what this consumer has in flight of these; how many those were."""
        if self.ended_by is not None or not offsets:
            return 0
        settled = self.subscription.settle_all(sorted(set(offsets)), self.attached)
        self._house.broker.wake(self.subscription)
        self._house.promises.kick()
        return settled

    def put_back(self, offsets: list[int]) -> None:
        """Let events that were taken, and never sent, go to the next consumer."""
        if self.ended_by is None:
            self.subscription.put_back(offsets, self.attached)
            self._house.broker.wake(self.subscription)
            self._house.promises.kick()

    def close(self) -> None:
        """Detach: what is not settled goes back."""
        promises = self._house.promises
        if promises.members.pop(self, None) is not None:
            self._house.broker.detach(self.attached)
            promises.kick()

    # The broker's side; see Outlet and Member

    def flush(self, now_s: float) -> None:
        self.notifier.notify()

    def released(self, consumer: Consumer, owed: list[Owed]) -> None:
        """Never: there is no handshake."""

    def ended(self, consumer: Consumer, reason: str) -> None:
        self.ended_by = reason
        self._house.promises.members.pop(self, None)
        self.notifier.notify()

    def moved(self, consumer: Consumer) -> None:
        self.moves += 1
        self.notifier.notify()


def offsets_of(portions: list[Portion]) -> list[int]:
    """The offsets of all events of the portions."""
    found: list[int] = []
    for one in portions:
        offsets = one.page.batch.offset_of
        found += [offsets(index) for index in range(one.lo, one.hi)]
    return found
