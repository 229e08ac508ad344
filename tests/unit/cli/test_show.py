from __future__ import annotations

import pytest

from penstock.cli import show


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (5 << 20, "5.0 MiB"),
        (3 << 30, "3.0 GiB"),
        (1 << 60, "1024.0 PiB"),
    ],
)
def test_sizes_have_units(count: int, text: str) -> None:
    assert show.size(count) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 dogs"), (1, "1 dog"), (2, "2 dogs")]
)
def test_counts_have_a_plural(number: int, text: str) -> None:
    assert show.count(number, "dog") == text


@pytest.mark.parametrize(
    ("timestamp_ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1 << 62, "4611686018427387904 ms"),
    ],
)
def test_times_are_utc_as_far_as_calendars_reach(timestamp_ms: int, text: str) -> None:
    assert show.time(timestamp_ms) == text


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"plain", "plain"),
        ("häßlich".encode(), "häßlich"),
        (b"two\nlines\x1b[31m", "two\\nlines\\x1b[31m"),
        (b"\xff\x00", "0xff00"),
        (b"x" * 201, "x" * 200 + "…"),
        (b"\xff" * 101, "0x" + "ff" * 100 + "…"),
    ],
)
def test_previews_are_one_printable_line(data: bytes, text: str) -> None:
    assert show.preview(data) == text


def test_tables_align_their_columns() -> None:
    rows = [("NAME", "N"), ("a-long-one", "1"), ("b", "22")]

    assert show.table(rows) == ["NAME        N", "a-long-one  1", "b           22"]
