"""A subscription of the async client."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Self

from penstock.client.deliveries import Delivery, Inbox, deliveries
from penstock.client.outgoing import Outgoing
from penstock.model.failure import Failure
from penstock.wire.native import Answer, Events

if TYPE_CHECKING:
    from penstock.client.aio import AsyncClient


class AsyncSubscription:
    """Events of a topic, one by one or in batches; acknowledge what was handled.

    Acks are sent together, before the next wait: with the next event, any other call,
    or ``flush``.
    """

    def __init__(
        self, client: AsyncClient, inbox: Inbox, position: int, *, auto_ack: bool
    ) -> None:
        self.topic = inbox.topic
        self.position = position
        self._client = client
        self._inbox = inbox
        self._auto_ack = auto_ack
        self._waiting: list[Delivery] = []
        self._when_moved: Callable[[], None] | None = None
        inbox.on_moved = self._moved

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[Delivery]:
        while True:
            yield await self.next()

    async def next(self) -> Delivery:
        """The next event; raises SubscriptionEnded, ConnectionLost."""
        if not self._waiting:
            batch = await self.next_batch()
            self._waiting = list(deliveries(self.topic, batch))
            self._waiting.reverse()
        return self._waiting.pop()

    async def next_batch(self) -> Events:
        """The next events, in columns."""
        while (batch := self._inbox.take()) is None:
            await self._client._arrival(self._inbox)
        return batch

    def ack(self, delivery: Delivery) -> None:
        """The event is done with."""
        self.settle([delivery.offset])

    def settle(self, offsets: Iterable[int]) -> None:
        """The events at these offsets are done with."""
        if not self._auto_ack:
            self._inbox.acks.extend(offsets)

    async def nack(
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
        failure = Failure(0, 0, kind, error, traceback, duration_s)
        self.refuse(delivery.offset, failure, final=final)
        await self._client._send()

    def refuse(self, offset: int, failure: Failure, *, final: bool = False) -> None:
        """As ``nack``; sent with whatever is sent next."""
        self._client._session.refuse(
            self._inbox.channel,
            offset,
            failure.message,
            failure.kind,
            failure.traceback,
            failure.duration_s,
            final=final,
        )

    async def finish(self, offsets: list[int], events: Mapping[str, Outgoing]) -> bool:
        """Settle events and publish what came of them: all or nothing.

        False if they are not here any more: then nothing was published. Raises
        ServerRefused, ConnectionLost.
        """
        session = self._client._session
        seq = session.finish(self._inbox.channel, offsets, events)
        message = await self._client._answer(seq)
        assert isinstance(message, Answer), "what Finish is answered by"
        return message.result is True

    def when_moved(self, call: Callable[[], None]) -> None:
        """Have this called when the subscription is moved.

        What came before counts for nothing: acks of it are not sent.
        """
        self._when_moved = call

    def _moved(self) -> None:
        self._waiting.clear()
        if self._when_moved is not None:
            self._when_moved()

    def put_back(self, offsets: Iterable[int]) -> None:
        """These were not begun: when this leaves, that is no try of them."""
        self._inbox.put_back.extend(offsets)

    def prefetch(self, events: int) -> None:
        """Have so many events on their way, or at hand, from now on.

        A server of before goes on as it was.
        """
        if self._client._session.prefetch(self._inbox.channel, events):
            self._client.flush_soon()

    def flush_soon(self) -> None:
        """Have the acks of this turn of the loop sent, once for all of them."""
        self._client.flush_soon()

    async def flush(self) -> None:
        """Send the acks so far."""
        self._client._session.flush_acks()
        await self._client._send()

    async def close(self) -> None:
        """Leave; it returns when all acks are durable. A name keeps its position."""
        session = self._client._session
        if self._inbox.channel not in session.inboxes:
            return
        session.flush_acks()
        unbegun = self._inbox.unbegun(self._waiting)
        seq = session.unsubscribe(self._inbox.channel, unbegun)
        del session.inboxes[self._inbox.channel]
        self._client._arrivals.pop(self._inbox, None)
        await self._client._answer(seq)
