"""Settings of tracing: off unless there is somewhere to send spans to."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from penstock.errors import InvalidOption
from penstock.model.option import check_options, option


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingOptions:
    """Settings of tracing."""

    endpoint: str | None = option(
        None,
        "collector that spans go to by OTLP over HTTP, such as "
        "`http://127.0.0.1:4318`; `off` traces nothing",
    )
    service: str = option("penstock", "name of this service in spans")
    share: float = option(
        1.0,
        "part of the traces that begin here which are recorded; others are as "
        "their beginning says",
        least=0,
        most=1,
    )

    def __post_init__(self) -> None:
        check_options(self)
        if self.endpoint is not None and not _is_url(self.endpoint):
            raise InvalidOption("endpoint", self.endpoint, "http://HOST:PORT")
        if not self.service:
            raise InvalidOption("service", self.service, "not empty")


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
