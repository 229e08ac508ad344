from __future__ import annotations

import pytest

from penstock.cli.refusal import Refusal
from penstock.cli.start import start_of


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("0", 0),
        ("17", 17),
        ("1970-01-01T00:00:01Z", "time:1000"),
        ("1970-01-01T00:00:01.5", "time:1500"),
        ("1970-01-01T01:00:00+01:00", "time:0"),
        ("1970-01-02", "time:86400000"),
        ("1960-01-01", "time:0"),
    ],
)
def test_a_place_in_a_topic(text: str, start: str | int) -> None:
    assert start_of(text) == start


@pytest.mark.parametrize("text", ["", "soon", "-1", "1.5", "٣"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(Refusal, match="is no place in a topic"):
        start_of(text)
