from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from penstock.tracing import of_provider
from penstock.tracing import spans as module
from penstock.tracing.spans import HEADER, Tracing


@dataclass(frozen=True)
class Event:
    topic: str = "orders"
    offset: int = 7
    id: str = "id-7"
    headers: Mapping[str, str] = field(default_factory=dict)


class Recorder:
    """A tracing whose spans are kept."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))
        self.tracing: Tracing = of_provider(self.provider)

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._kept.get_finished_spans())


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def parent(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def own(span: ReadableSpan) -> int:
    assert span.context is not None
    return span.context.span_id


def published(recorder: Recorder) -> dict[str, str]:
    return recorder.tracing.stamped("orders", {"a": "b"}, "shop")


def test_publishing_puts_its_context_into_the_headers(recorder: Recorder) -> None:
    headers = published(recorder)

    (span,) = recorder.spans
    assert (span.name, span.kind) == ("publish orders", SpanKind.PRODUCER)
    assert headers["a"] == "b"
    version, trace_id, span_id, _ = headers[HEADER].split("-")
    assert (version, int(span_id, 16)) == ("00", own(span))
    assert span.context is not None
    assert int(trace_id, 16) == span.context.trace_id
    assert span.attributes is not None
    assert span.attributes["messaging.client.id"] == "shop"


def test_several_events_share_a_span(recorder: Recorder) -> None:
    with recorder.tracing.publishing("orders", [None, {"a": "b"}], "") as headers:
        pass

    assert headers[0][HEADER] == headers[1][HEADER]
    (span,) = recorder.spans
    assert span.attributes is not None
    assert span.attributes["messaging.batch.message_count"] == 2


def test_publishing_is_below_what_the_program_is_at(recorder: Recorder) -> None:
    with recorder.provider.get_tracer("program").start_as_current_span("outer"):
        published(recorder)

    inner, outer = recorder.spans
    assert parent(inner) == own(outer)


def test_a_context_that_comes_with_the_event_goes_on(recorder: Recorder) -> None:
    first = published(recorder)

    second = recorder.tracing.stamped("orders", first, "")

    one, other = recorder.spans
    assert parent(other) == own(one)
    assert second[HEADER] != first[HEADER]


def test_publishing_that_fails_is_told(recorder: Recorder) -> None:
    with (
        pytest.raises(ValueError, match="no"),
        recorder.tracing.publishing("orders", [None], ""),
    ):
        raise ValueError("no")

    (span,) = recorder.spans
    assert span.status.status_code is StatusCode.ERROR


def test_a_delivery_begins_when_its_event_was_published(recorder: Recorder) -> None:
    headers = published(recorder)

    rows = [(7, 2_000, headers, 1), (8, 2_000, {}, 1), (9, 99_000, headers, 2)]
    recorder.tracing.delivered("billing", "orders", rows, 5.0)

    first, one, future = recorder.spans
    assert (one.name, one.start_time, one.end_time) == (
        "deliver orders",
        2_000_000_000,
        5_000_000_000,
    )
    assert parent(one) == own(first)
    assert future.start_time == future.end_time  # by a clock that is ahead


def test_handling_is_below_the_delivery(recorder: Recorder) -> None:
    headers = published(recorder)
    event = Event(headers=headers)
    recorder.tracing.delivered("billing", "orders", [(7, 0, headers, 1)], 5.0)

    with recorder.tracing.handling(event, "billing"):
        inside = trace.get_current_span().get_span_context().span_id

    _, delivery, handling = recorder.spans
    assert parent(handling) == own(delivery)
    assert inside == own(handling)
    assert handling.name == "handle orders"


def test_handling_elsewhere_is_below_the_publishing(recorder: Recorder) -> None:
    event = Event(headers=published(recorder))

    with recorder.tracing.handling(event):
        pass

    first, handling = recorder.spans
    assert parent(handling) == own(first)


@pytest.mark.parametrize("headers", [{}, {HEADER: "nonsense"}])
def test_an_event_without_a_context_begins_a_trace(
    recorder: Recorder, headers: dict[str, str]
) -> None:
    with recorder.tracing.handling(Event(headers=headers)):
        pass

    (span,) = recorder.spans
    assert span.parent is None


def test_a_handler_that_fails_is_told(recorder: Recorder) -> None:
    with pytest.raises(KeyError), recorder.tracing.handling(Event()):
        raise KeyError("x")

    (span,) = recorder.spans
    assert span.status.status_code is StatusCode.ERROR
    assert [one.name for one in span.events] == ["exception"]
    assert not trace.get_current_span().is_recording()


def test_a_batch_is_linked_to_all_of_its_events(recorder: Recorder) -> None:
    events = [Event(offset=at, headers=published(recorder)) for at in range(3)]

    call = recorder.tracing.begin("billing", events)
    call.leave()

    *publishing, handling = recorder.spans
    assert parent(handling) == own(publishing[0])
    links = [link.context.span_id for link in handling.links]
    assert links == [own(one) for one in publishing[1:]]


def test_old_deliveries_are_forgotten(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_DELIVERIES", 1)
    headers = published(recorder)
    rows = [(at, 0, headers, 1) for at in (7, 8)]

    recorder.tracing.delivered("billing", "orders", rows, 5.0)
    with recorder.tracing.handling(Event(headers=headers), "billing"):
        pass

    assert parent(recorder.spans[-1]) == own(recorder.spans[0])


def test_closing_is_for_whoever_made_the_provider() -> None:
    closed: list[str] = []

    Tracing(TracerProvider()).close()
    Tracing(TracerProvider(), lambda: closed.append("closed")).close()

    assert closed == ["closed"]
