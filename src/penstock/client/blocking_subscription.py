"""A subscription of the blocking client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Self

from penstock.client.deliveries import Delivery, Inbox, deliveries
from penstock.wire.native import Events

if TYPE_CHECKING:
    from penstock.client.blocking import Client

# Acks that are sent together, at most.
MAX_ACKS = 1000


class Subscription:
    """Events of a topic, one by one or in batches; acknowledge what was handled.

    Acks are sent together, before the next wait: with the next event, any other call,
    or ``flush``.
    """

    def __init__(
        self, client: Client, inbox: Inbox, position: int, *, auto_ack: bool
    ) -> None:
        self.topic = inbox.topic
        self.position = position
        self._client = client
        self._inbox = inbox
        self._auto_ack = auto_ack
        self._waiting: list[Delivery] = []
        inbox.on_moved = lambda: self._waiting.clear()  # it is another list by then

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Delivery]:
        while True:
            delivery = self.next()
            assert delivery is not None, "without a limit it waits for one"
            yield delivery

    def next(self, timeout_s: float | None = None) -> Delivery | None:
        """The next event; None if none came within ``timeout_s``.

        Raises SubscriptionEnded, ConnectionLost.
        """
        if not self._waiting:
            batch = self.next_batch(timeout_s)
            if batch is None:
                return None
            self._waiting = list(deliveries(self.topic, batch))
            self._waiting.reverse()
        return self._waiting.pop()

    def next_batch(self, timeout_s: float | None = None) -> Events | None:
        """The next events, in columns; None if none came within ``timeout_s``."""
        inbox = self._inbox
        if inbox.batches:
            return inbox.take()
        self._client._until(lambda: bool(inbox.batches or inbox.ended), timeout_s)
        return inbox.take()

    def ack(self, delivery: Delivery) -> None:
        """The event is done with."""
        self.settle([delivery.offset])

    def settle(self, offsets: Iterable[int]) -> None:
        """The events at these offsets are done with."""
        if self._auto_ack:
            return
        self._inbox.acks.extend(offsets)
        if len(self._inbox.acks) >= MAX_ACKS:
            self.flush()

    def nack(
        self,
        delivery: Delivery,
        error: str,
        *,
        kind: str = "",
        traceback: str = "",
        duration_s: float | None = None,
        final: bool = False,
    ) -> None:
        """This try has failed: the subscription's policy decides what follows.

        ``final``: no other try can be better, the event is a dead letter now.
        """
        self._client._session.refuse(
            self._inbox.channel,
            delivery.offset,
            error,
            kind,
            traceback,
            duration_s,
            final=final,
        )
        self._client._send()

    def put_back(self, offsets: Iterable[int]) -> None:
        """These were not begun: when this leaves, that is no try of them."""
        self._inbox.put_back.extend(offsets)

    def flush(self) -> None:
        """Send the acks so far."""
        self._client._session.flush_acks()
        self._client._send()

    def close(self) -> None:
        """Leave; it returns when all acks are durable. A name keeps its position."""
        session = self._client._session
        if self._inbox.channel not in session.inboxes:
            return
        session.flush_acks()
        unbegun = self._inbox.unbegun(self._waiting)
        seq = session.unsubscribe(self._inbox.channel, unbegun)
        del session.inboxes[self._inbox.channel]
        self._client._wait(seq)
