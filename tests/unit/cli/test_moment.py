from __future__ import annotations

import time

import click
import pytest

from penstock.cli.moment import MOMENT


@pytest.mark.parametrize(
    ("text", "moment_ms"),
    [
        ("1970-01-01", 0),
        ("1970-01-02T00:00Z", 86_400_000),
        ("1970-01-02 01:00+01:00", 86_400_000),
        ("1900-01-01", 0),
    ],
)
def test_a_time_is_utc_unless_it_says(text: str, moment_ms: int) -> None:
    assert MOMENT.convert(text, None, None) == moment_ms


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0s", 0), ("90m", 5400), ("1.5h", 5400), ("7d", 604_800), ("1w", 604_800)],
)
def test_a_duration_is_so_long_ago(
    monkeypatch: pytest.MonkeyPatch, text: str, seconds: int
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1e9)

    assert MOMENT.convert(text, None, None) == (10**9 - seconds) * 1000


def test_what_came_before_1970_is_1970(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1.0)

    assert MOMENT.convert("7d", None, None) == 0
    assert MOMENT.convert(5, None, None) == 5


@pytest.mark.parametrize("text", ["", "yesterday", "7", "7y", "-1h", "2030-13-01"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError, match="is no moment"):
        MOMENT.convert(text, None, None)
