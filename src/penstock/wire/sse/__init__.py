"""Server-sent events, as the WHATWG HTML standard has them: parse and render."""

from __future__ import annotations

from penstock.wire.sse.parsing import MAX_FIELD_BYTES, ServerSentEvent, SseParser
from penstock.wire.sse.rendering import numbered, render

__all__ = ["MAX_FIELD_BYTES", "ServerSentEvent", "SseParser", "numbered", "render"]
