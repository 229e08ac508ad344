"""Tracing with OpenTelemetry: off unless it is asked for, and free then.

tracing = penstock.tracing.exporting("http://127.0.0.1:4318")
async with penstock.open("data", tracing=tracing) as broker: ...

Nothing of OpenTelemetry is imported before that. See docs/tracing.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.tracing.options import TracingOptions

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from penstock.tracing.spans import Tracing

__all__ = ["TracingOptions", "exporting", "of_options", "of_provider"]


def of_provider(provider: TracerProvider | None = None) -> Tracing:
    """Spans of a provider of the program's own; None: of the global one.

    Raises MissingExtra.
    """
    from penstock.tracing.export import made

    return made(provider)


def exporting(endpoint: str, service: str = "penstock") -> Tracing:
    """Spans that go to a collector, by OTLP over HTTP; raises MissingExtra."""
    return _of(TracingOptions(endpoint=endpoint, service=service))


def of_options(options: TracingOptions) -> Tracing | None:
    """What the settings say: None without an endpoint. Raises MissingExtra."""
    return None if options.endpoint is None else _of(options)


def _of(options: TracingOptions) -> Tracing:
    from penstock.tracing.export import exported

    return exported(options)
