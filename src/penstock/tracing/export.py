"""Where spans go: to a provider of the program's own, or to a collector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import MissingExtra
from penstock.tracing.options import TracingOptions

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from penstock.tracing.spans import Tracing

TRACES = "/v1/traces"
# For one batch of spans: who ends waits for the last one, and spans are not worth more.
EXPORT_S = 3.0


def made(provider: TracerProvider | None) -> Tracing:
    """Raises MissingExtra."""
    try:
        from penstock.tracing.spans import Tracing
    except ImportError as error:
        raise _missing(error) from error
    return Tracing(provider)


def exported(options: TracingOptions) -> Tracing:
    """Spans in batches to the collector of the options; raises MissingExtra."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

        from penstock.tracing.spans import Tracing
    except ImportError as error:
        raise _missing(error) from error
    assert options.endpoint is not None, "asked for only if there is one"
    endpoint = options.endpoint.rstrip("/")
    if not endpoint.endswith(TRACES):
        endpoint += TRACES
    provider = TracerProvider(
        resource=Resource.create({"service.name": options.service}),
        sampler=ParentBasedTraceIdRatio(options.share),
    )
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_S)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Tracing(provider, provider.shutdown)


def _missing(error: ImportError) -> MissingExtra:
    package = (error.name or "opentelemetry").replace(".", "-")
    return MissingExtra("tracing", package, "otel")
