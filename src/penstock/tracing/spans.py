"""The spans of an event: published, delivered, handled, each the parent of the next.

    publish orders ──> deliver orders ──> handle orders ──> publish invoices ──> …
    header traceparent carries it

The context of a publish span travels in the headers ``traceparent`` and ``tracestate``
of the event, as the W3C says, and is stored with it. A delivery begins when its event
was published and ends when a consumer gets it. Where delivery and handler are in one
process the handler is below the delivery, elsewhere both are below the publishing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import Token
from typing import Protocol

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TracerProvider,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

HEADER = "traceparent"
# Deliveries that a handler may still ask for.
MAX_DELIVERIES = 10_000

_propagator = TraceContextTextMapPropagator()


class TracedEvent(Protocol):
    """What a span tells of an event."""

    @property
    def topic(self) -> str: ...
    @property
    def offset(self) -> int: ...
    @property
    def id(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class Handling:
    """A call of a handler under way."""

    __slots__ = ("_span", "_token")

    def __init__(self, span: Span) -> None:
        self._span = span
        self._token: Token[Context] | None = None

    def enter(self) -> None:
        """What the handler does from now on belongs to it."""
        self._token = contexts.attach(trace.set_span_in_context(self._span))

    def leave(self, error: BaseException | None = None) -> None:
        """It has ended, in the task or thread that it was entered in."""
        if self._token is not None:
            contexts.detach(self._token)
            self._token = None
        if error is not None:
            self._span.record_exception(error)
            self._span.set_status(Status(StatusCode.ERROR, type(error).__qualname__))
        self._span.end()


class Tracing:
    """Begins and ends spans. Made by ``penstock.tracing``."""

    def __init__(
        self,
        provider: TracerProvider | None = None,
        close: Callable[[], None] | None = None,
    ) -> None:
        self._tracer = trace.get_tracer("penstock", tracer_provider=provider)
        self._close = close
        self._deliveries: OrderedDict[tuple[str, str, int], SpanContext] = OrderedDict()

    def close(self) -> None:
        """Send what is left, if that is ours to do."""
        if self._close is not None:
            self._close()

    # Publishing

    @contextmanager
    def publishing(
        self, topic: str, headers: Sequence[Mapping[str, str] | None], producer: str
    ) -> Iterator[list[dict[str, str]]]:
        """A span around publishing; the headers that the events are to have.

        An event that has a context already is published in that; of several, all are
        in that of the first.
        """
        given = next((one for one in headers if one and HEADER in one), None)
        parent = None if given is None else _propagator.extract(given)
        span = self._tracer.start_span(
            f"publish {topic}",
            parent,
            SpanKind.PRODUCER,
            {
                **_about("send", topic, len(headers)),
                **({"messaging.client.id": producer} if producer else {}),
            },
        )
        carried = self._carried(span)
        try:
            yield [{**(one or {}), **carried} for one in headers]
        except BaseException as error:
            span.record_exception(error)
            span.set_status(Status(StatusCode.ERROR, type(error).__qualname__))
            raise
        finally:
            span.end()

    def stamped(
        self, topic: str, headers: Mapping[str, str] | None, producer: str
    ) -> dict[str, str]:
        """The headers of an event that is published when its handler has succeeded."""
        with self.publishing(topic, [headers], producer) as found:
            return found[0]

    # Delivering

    def delivered(
        self,
        subscriber: str,
        topic: str,
        events: Iterable[tuple[int, int, Mapping[str, str], int]],
        now_s: float,
    ) -> None:
        """Events (offset, timestamp in ms, headers, try) go to a consumer."""
        now_ns = int(now_s * 1e9)
        for offset, timestamp_ms, headers, tries in events:
            if HEADER not in headers:
                continue
            span = self._tracer.start_span(
                f"deliver {topic}",
                _propagator.extract(headers),
                SpanKind.CONSUMER,
                {
                    **_about("receive", topic),
                    "messaging.consumer.group.name": subscriber,
                    "penstock.offset": offset,
                    "penstock.try": tries,
                },
                # Of a clock that was set back, or of another machine's.
                start_time=min(timestamp_ms * 1_000_000, now_ns),
            )
            span.end(now_ns)
            self._deliveries[subscriber, topic, offset] = span.get_span_context()
            if len(self._deliveries) > MAX_DELIVERIES:
                self._deliveries.popitem(last=False)

    # Handling

    def begin(
        self, subscriber: str, events: Sequence[TracedEvent], tries: int = 1
    ) -> Handling:
        """A call of a handler for one event, or for a batch of them."""
        first = events[0]
        parents = [self._parent(subscriber, one) for one in events]
        # Of its own: whatever the task is in that calls handlers, is none of theirs.
        context = Context()
        if parents[0] is not None:
            context = trace.set_span_in_context(NonRecordingSpan(parents[0]), context)
        span = self._tracer.start_span(
            f"handle {first.topic}",
            context,
            SpanKind.CONSUMER,
            {
                **_about("process", first.topic, len(events)),
                "messaging.consumer.group.name": subscriber,
                "messaging.message.id": first.id,
                "penstock.offset": first.offset,
                "penstock.try": tries,
            },
            links=[Link(one) for one in parents[1:] if one is not None],
        )
        return Handling(span)

    @contextmanager
    def handling(self, event: TracedEvent, subscriber: str = "") -> Iterator[None]:
        """A span around what a consumer does with an event."""
        call = self.begin(subscriber, [event])
        call.enter()
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            call.leave(error)

    def _parent(self, subscriber: str, event: TracedEvent) -> SpanContext | None:
        delivery = self._deliveries.get((subscriber, event.topic, event.offset))
        if delivery is not None:
            return delivery
        if HEADER not in event.headers:
            return None
        found = trace.get_current_span(_propagator.extract(event.headers, Context()))
        context = found.get_span_context()
        return context if context.is_valid else None

    def _carried(self, span: Span) -> dict[str, str]:
        carried: dict[str, str] = {}
        _propagator.inject(carried, trace.set_span_in_context(span, Context()))
        return carried


def _about(operation: str, topic: str, count: int = 1) -> dict[str, str | int]:
    about: dict[str, str | int] = {
        "messaging.system": "penstock",
        "messaging.operation.type": operation,
        "messaging.destination.name": topic,
    }
    if count > 1:
        about["messaging.batch.message_count"] = count
    return about
