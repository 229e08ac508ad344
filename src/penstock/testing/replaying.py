"""Handing one event to a handler, without a broker.

    published = replay(billing, orders, event)

It raises what the handler raises, with its own traceback: a test of a dead letter fails
as the handler did, and passes once the handler is right.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from typing import Any

from penstock.clock import Clock, SystemClock
from penstock.embedded import Context, Domain, Event, Topic
from penstock.embedded.handler import Handler
from penstock.errors import InvalidHandler
from penstock.model.event import SETTABLE
from penstock.model.event import Event as RawEvent
from penstock.testing.inspector import typed

# Where the event was, if only a payload is given.
_ID = "replayed"


def replay(
    domain: Domain,
    topic: Topic[Any] | str,
    event: object,
    *,
    tries: int = 1,
    clock: Clock | None = None,
) -> list[Event[Any]]:
    """Call the handler of a domain once; what it would publish is returned.

    ``event`` is an event, with its payload as bytes or as the handler's type, or a
    payload alone; for a handler of batches it may be a list. What the handler raises
    comes out. Raises TimeoutError if it takes longer than its options allow,
    UnfitPayload, and InvalidHandler if the domain has none for the topic.

    For a test that is not async, whether the handler is or not; see ``replay_async``.
    """
    handler = _handler(domain, topic)
    context = _context(domain, handler, event, tries, clock or SystemClock())
    if handler.is_async:
        _run(_awaited(handler, context))
    else:
        _called(handler, context)
    return context.published


async def replay_async(
    domain: Domain,
    topic: Topic[Any] | str,
    event: object,
    *,
    tries: int = 1,
    clock: Clock | None = None,
) -> list[Event[Any]]:
    """The twin of ``replay`` for async tests: the handler runs on their loop."""
    handler = _handler(domain, topic)
    context = _context(domain, handler, event, tries, clock or SystemClock())
    if handler.is_async:
        await _awaited(handler, context)
    else:
        await asyncio.to_thread(_called, handler, context)
    return context.published


class Recording(Context):
    """A context that publishes nothing, and tells what would have been published."""

    __slots__ = ("published",)

    # Any: what Context.publish takes, in all its flavours.
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.published: list[Event[Any]] = []

    def publish(self, topic: Topic[Any] | str, payload: Any, **more: Any) -> None:
        """Check it as a broker would, and keep it with the payload as it was given."""
        super().publish(topic, payload, **more)
        intent = self.intents()[-1]
        said = {one.attribute: getattr(intent, one.name) for one in SETTABLE}
        said |= {"id": intent.id or "", "headers": intent.headers or {}}
        self.published.append(
            Event(
                topic=intent.topic,
                offset=len(self.published),
                timestamp_ms=self.event.timestamp_ms,
                payload=payload,
                producer=self.subscriber,
                **said,
            )
        )


def _run(coroutine: Coroutine[Any, Any, None]) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(coroutine)
    else:
        coroutine.close()
        raise RuntimeError("this is async code: await replay_async instead")


async def _awaited(handler: Handler, context: Context) -> None:
    async with asyncio.timeout(handler.options.timeout_s):
        await _call(handler, context)


def _called(handler: Handler, context: Context) -> None:
    begin_s = time.monotonic()
    _call(handler, context)
    duration_s = time.monotonic() - begin_s
    if duration_s > handler.options.timeout_s:
        limit_s = handler.options.timeout_s
        raise TimeoutError(f"it ran {duration_s:.1f} s, longer than {limit_s:g} s")


def _call(handler: Handler, context: Context) -> Any:
    """Call the function; what it returns has to be awaited if it is async."""
    events = context.events
    argument = events if handler.options.batch else events[0]
    if handler.with_context:
        return handler.function(argument, context)
    return handler.function(argument)


def _handler(domain: Domain, topic: Topic[Any] | str) -> Handler:
    found = domain.handler(topic)
    if found is None:
        name = topic if isinstance(topic, str) else topic.name
        known = ", ".join(sorted(one.topic for one in domain)) or "none"
        raise InvalidHandler(
            f"domain {domain.name}", f"has no handler of {name}; it has {known}"
        )
    return found


def _context(
    domain: Domain, handler: Handler, given: object, tries: int, clock: Clock
) -> Recording:
    several = bool(handler.options.batch) and isinstance(given, Sequence)
    wanted = list(given) if several else [given]  # type: ignore[call-overload]
    now_s = clock.now_s()
    events = [
        _event(handler, one, place, int(now_s * 1000))
        for place, one in enumerate(wanted)
    ]
    deadline_s = now_s + handler.options.timeout_s
    return Recording(domain.name, events, tries, deadline_s, clock)


def _event(handler: Handler, given: object, place: int, now_ms: int) -> Event[Any]:
    if isinstance(given, RawEvent | Event):
        return typed(given, handler.codec)
    event: Event[Any] = Event(
        topic=handler.topic,
        offset=place,
        id=f"{_ID}-{place}",
        timestamp_ms=now_ms,
        payload=given,
    )
    return typed(event, handler.codec)
