from __future__ import annotations

import click
import pytest

from penstock.cli.duration import Duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90.0), ("60s", 60.0), ("5m", 300.0), ("1h30m", 5400.0), ("250ms", 0.25)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert Duration().convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "0", "-1s", "5 minutes", "s", "1d", "0s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="60s"):
        Duration().convert(text, None, None)
