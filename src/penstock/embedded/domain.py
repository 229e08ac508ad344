"""Domains: a part of an application, and the handlers by which it hears of others.

    billing = Domain("billing")

    @billing.on(orders)
    async def charge(event: Event[Order], context: Context) -> None:
        context.publish(payments, Payment(event.payload.total))

The name of the domain is the name of its subscriptions: it keeps its place in every
topic over restarts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar, Unpack, overload

from penstock.broker.names import accepted_subscriber, accepted_topic
from penstock.embedded.context import Context
from penstock.embedded.event import Event
from penstock.embedded.handler import Handler
from penstock.embedded.options import MAX_BATCH, HandlerOptions, HandlerSettings
from penstock.embedded.topic import Topic
from penstock.errors import InvalidOption, SubscribedTwice

T = TypeVar("T")
R = TypeVar("R")


class Domain:
    """A subscriber with its handlers, one for each topic."""

    def __init__(self, name: str) -> None:
        self.name = accepted_subscriber(name)
        self._handlers: dict[str, Handler] = {}

    def __repr__(self) -> str:
        return f"Domain({self.name!r}, {len(self._handlers)} handlers)"

    def __iter__(self) -> Iterator[Handler]:
        return iter(list(self._handlers.values()))

    def handler(self, topic: Topic[Any] | str) -> Handler | None:
        """What handles a topic."""
        return self._handlers.get(topic if isinstance(topic, str) else topic.name)

    @overload
    def on(self, topic: Topic[T], **options: Unpack[HandlerSettings]) -> On[T]: ...

    @overload
    def on(self, topic: str, **options: Unpack[HandlerSettings]) -> On[Any]: ...

    def on(
        self, topic: Topic[Any] | str, **options: Unpack[HandlerSettings]
    ) -> On[Any]:
        """Have a function handle the events of a topic, one by one.

        The options are those of HandlerOptions. For a topic that is given by its name
        alone the type of payloads is that of the function's first parameter. Raises
        SubscribedTwice, InvalidHandler, InvalidOption.
        """
        return On(self, topic, HandlerOptions(**options))

    @overload
    def on_batch(
        self, topic: Topic[T], *, size: int = ..., **options: Unpack[HandlerSettings]
    ) -> OnBatch[T]: ...

    @overload
    def on_batch(
        self, topic: str, *, size: int = ..., **options: Unpack[HandlerSettings]
    ) -> OnBatch[Any]: ...

    def on_batch(
        self,
        topic: Topic[Any] | str,
        *,
        size: int = 1000,
        **options: Unpack[HandlerSettings],
    ) -> OnBatch[Any]:
        """Have a function handle the events of a topic, up to ``size`` at once.

        They succeed together. If a call fails, each of its events is tried alone.
        """
        if size < 1:
            raise InvalidOption("size", size, f"from 1 to {MAX_BATCH}")
        options.setdefault("concurrency", 1)
        return OnBatch(self, topic, HandlerOptions(batch=size, **options))

    def add(self, handler: Handler) -> None:
        """Subscribe; raises SubscribedTwice."""
        accepted_topic(handler.topic)
        known = self._handlers.get(handler.topic)
        if known is not None:
            raise SubscribedTwice(self.name, handler.topic, known.where)
        self._handlers[handler.topic] = handler


class _Decorator(Generic[T]):
    """Adds functions to a domain, as they are."""

    def __init__(
        self, domain: Domain, topic: Topic[T] | str, options: HandlerOptions
    ) -> None:
        self._domain = domain
        self._topic = topic
        self._options = options

    def _add(self, function: Callable[..., R]) -> Callable[..., R]:
        self._domain.add(Handler.of(self._topic, function, self._options))
        return function


class On(_Decorator[T]):
    """A decorator of handlers of single events."""

    @overload
    def __call__(
        self, function: Callable[[Event[T], Context], R]
    ) -> Callable[[Event[T], Context], R]: ...

    @overload
    def __call__(
        self, function: Callable[[Event[T]], R]
    ) -> Callable[[Event[T]], R]: ...

    def __call__(self, function: Callable[..., R]) -> Callable[..., R]:
        return self._add(function)


class OnBatch(_Decorator[T]):
    """A decorator of handlers of many events at once."""

    @overload
    def __call__(
        self, function: Callable[[list[Event[T]], Context], R]
    ) -> Callable[[list[Event[T]], Context], R]: ...

    @overload
    def __call__(
        self, function: Callable[[list[Event[T]]], R]
    ) -> Callable[[list[Event[T]]], R]: ...

    def __call__(self, function: Callable[..., R]) -> Callable[..., R]:
        return self._add(function)
