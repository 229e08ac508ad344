from __future__ import annotations

import sys

import pytest

from penstock.errors import MissingExtra
from penstock.tracing import TracingOptions, exporting, of_options, of_provider

MODULES = ("opentelemetry", "penstock.tracing.spans")


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenTelemetry is not installed."""
    for name in list(sys.modules):
        if name.startswith(MODULES):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)


@pytest.mark.usefixtures("without")
def test_what_is_missing_is_said() -> None:
    with pytest.raises(MissingExtra, match=r"penstock\[otel\]"):
        of_provider()
    with pytest.raises(MissingExtra, match=r"penstock\[otel\]"):
        exporting("http://127.0.0.1:4318")


def test_settings_make_a_tracing() -> None:
    tracing = of_options(TracingOptions(endpoint="http://127.0.0.1:9", share=0.0))

    assert tracing is not None
    headers = tracing.stamped("t", None, "")
    flags = int(headers["traceparent"].rpartition("-")[2], 16)
    assert not flags & 1  # it is not recorded, and says so
    tracing.close()
