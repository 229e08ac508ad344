"""Consumers that outlive a request: a client that pulls comes back to its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.access.account import Account
from penstock.http.following import FollowTerms, follow
from penstock.http.stream_consumer import StreamConsumer
from penstock.model.policy import Policy

if TYPE_CHECKING:
    from penstock.http.house import House

# How often it is looked for those that no client comes back to.
SWEEP_S = 1.0


class PullConsumer:
    """The consumer of one subscription, and how many pull with it now."""

    __slots__ = ("left_s", "consumer", "users")

    def __init__(self, consumer: StreamConsumer) -> None:
        self.consumer = consumer
        self.users = 0
        self.left_s = _now_s()
        """When the last pull ended."""

    @contextmanager
    def pulling(self) -> Iterator[None]:
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1
            self.left_s = _now_s()


class PullConsumers:
    """All of them, by subscriber and topic; each for ``idle_s`` after its last use."""

    def __init__(self, idle_s: float) -> None:
        self._idle_s = idle_s
        self._pullers: dict[tuple[str, str], PullConsumer] = {}
        self._sweeping: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._pullers)

    async def taken(
        self,
        house: House,
        subscriber: str,
        topic: str,
        terms: FollowTerms,
        default: Policy,
        start: str | int,
        account: Account | None = None,
    ) -> PullConsumer:
        """The consumer of a subscription, attached; raises what subscribing raises."""
        known = self._known(subscriber, topic)
        if known is not None:
            if terms != FollowTerms():
                policy = terms.policy(known.consumer.subscription, default)
                house.broker.subscribe(subscriber, topic, policy)
                house.promises.kick()
            return known
        consumer = await follow(
            *(house, topic, subscriber),
            start=start,
            terms=terms,
            default=default,
            account=account,
        )
        if (other := self._known(subscriber, topic)) is not None:
            consumer.close()  # another request was faster
            return other
        made = self._pullers[subscriber, topic] = PullConsumer(consumer)
        self._sweep_later()
        return made

    def close(self) -> None:
        """Detach every consumer: what they held goes back."""
        for puller in self._pullers.values():
            puller.consumer.close()
        self._pullers.clear()
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None

    def _known(self, subscriber: str, topic: str) -> PullConsumer | None:
        puller = self._pullers.get((subscriber, topic))
        return (
            None if puller is None or puller.consumer.ended_by is not None else puller
        )

    def _sweep_later(self) -> None:
        if self._sweeping is None and self._pullers:
            loop = asyncio.get_running_loop()
            self._sweeping = loop.call_later(min(SWEEP_S, self._idle_s), self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        now_s = _now_s()
        for place, puller in list(self._pullers.items()):
            idle = not puller.users and now_s - puller.left_s >= self._patience_s(
                puller
            )
            if idle or puller.consumer.ended_by is not None:
                puller.consumer.close()
                del self._pullers[place]
        self._sweep_later()

    def _patience_s(self, puller: PullConsumer) -> float:
        """A client that has events at hand has the time to acknowledge them."""
        one = puller.consumer.subscription
        if not one.owed.count_of(puller.consumer.attached):
            return self._idle_s
        return max(self._idle_s, one.policy.ack_timeout_s or 0.0)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
