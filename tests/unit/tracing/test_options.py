from __future__ import annotations

import pytest

from penstock.errors import InvalidOption
from penstock.tracing import TracingOptions, of_options


def test_nothing_is_traced_by_default() -> None:
    assert TracingOptions().endpoint is None
    assert of_options(TracingOptions()) is None


@pytest.mark.parametrize(
    "given",
    [
        {"endpoint": "localhost:4318"},
        {"endpoint": "ftp://localhost"},
        {"endpoint": "http://"},
        {"endpoint": "http://localhost:many"},
        {"service": ""},
        {"share": 1.5},
        {"share": -1.0},
    ],
)
def test_what_makes_no_sense_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(InvalidOption):
        TracingOptions(**given)  # type: ignore[arg-type]
