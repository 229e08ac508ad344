from __future__ import annotations

import click
import msgspec
import pytest

from penstock.cli.top_view import elapsed, lines_of, number, spark
from penstock.desk.views.figures import (
    DiskRow,
    History,
    Overview,
    RateRow,
    SyncRow,
    TopicFigures,
    TotalRow,
)


def topic(name: str, rate: float = 0.0, **more: int) -> TopicFigures:
    about = {"events": 7, "bytes": 2048, "lag": 0, "subscriptions": 0}
    return TopicFigures(
        name=name,
        in_=rate,
        out=rate,
        spark=[rate] * 30,
        **{**about, "dead_letters": 0, **more},
    )


def look(*topics: TopicFigures, count: int | None = None) -> Overview:
    return Overview(
        at_ms=1_700_000_000_000,
        uptime_s=7_500.0,
        version="1.2.3",
        rates=RateRow(in_=5012.0, out=4998.0, in_bytes=3e6, out_bytes=1e6),
        totals=TotalRow(in_=1, out=2),
        lag=1203,
        unsettled=120,
        dead_letters=3,
        disk=DiskRow(used_bytes=5 << 30, free_bytes=1 << 40),
        sync=SyncRow(p50_ms=1.25, p95_ms=4.0, commits_s=210.0),
        connections={"native": 2, "line": 3},
        topics_count=len(topics) if count is None else count,
        subscriptions_count=33,
        history=History(step_s=1, in_=[1.0, 2.0], out=[0.0, 0.0], lag=[None, 1]),
        topics=list(topics),
        more=False,
    )


def plain(lines: list[str]) -> list[str]:
    return [click.unstyle(line) for line in lines]


def test_the_head_says_it_all() -> None:
    lines = plain(lines_of(look(topic("orders", 5.0)), 100))

    assert lines[0].startswith("Penstock 1.2.3, up 2 h 5 min")
    assert lines[0].endswith("22:13:20 UTC")
    assert lines[1].split() == ["in", "5", "012/s", "2.9", "MiB/s", "▅█"]
    assert lines[2].split()[-1] == "··"
    assert lines[3] == "lag 1 203   unsettled 120   dead letters 3"
    assert lines[4] == (
        "sync 1.2 ms (95 %: 4.0)   commits 210/s   disk 5.0 GiB, 1.0 TiB free"
    )
    assert lines[5] == "topics 1   subscriptions 33   connections line 3, native 2"


def test_nothing_that_a_server_says_is_obeyed_by_the_terminal() -> None:
    said = look(topic("a\x1b[2J"))
    strange = {"version": "1\x1b]0;owned\x07", "connections": {"\x9b2J": 1}}
    lines = plain(lines_of(msgspec.structs.replace(said, **strange), 200))

    assert r"1\x1b]0;owned\x07, up" in lines[0]
    assert r"connections \x9b2J 1" in lines[5]
    assert lines[8].startswith(r"a\x1b[2J")
    assert all(line.isprintable() for line in lines)


def test_a_row_for_each_topic() -> None:
    lines = plain(lines_of(look(topic("orders", 5.5, lag=12, dead_letters=2)), 200))

    assert lines[7].split()[:5] == ["TOPIC", "IN/S", "OUT/S", "LAG", "LETTERS"]
    assert lines[8].split()[:6] == ["orders", "5.5", "5.5", "12", "2", "-"]
    assert lines[8].endswith("█" * 30)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 100, 120, 200, 400])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    rows = [topic("n" * 300, 1e9, lag=10**9), topic("short"), topic("tab\tbell\a")]

    lines = plain(lines_of(look(*rows), width))

    assert all(len(line) <= width for line in lines)
    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("height", [5, 10, 24])
def test_no_more_lines_than_the_terminal_has(height: int) -> None:
    rows = [topic(f"t{n}") for n in range(100)]

    lines = plain(lines_of(look(*rows, count=1000), 80, height))

    assert len(lines) <= max(height, 10)
    assert lines[-1].startswith("… and ")


def test_no_topics_are_said() -> None:
    assert plain(lines_of(look(), 80))[-1] == "no topics"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.44, "0.4"),
        (9.0, "9"),
        (12.7, "13"),
        (1234, "1 234"),
        (999_999, "999 999"),
        (1_000_000, "1.0 M"),
        (12_345_678, "12.3 M"),
        (999_999_999, "1.0 G"),
        (2.5e12, "2.5 T"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (59, "59 s"),
        (60, "1 min"),
        (3600, "1 h 0 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_times_are_short(seconds: float, text: str) -> None:
    assert elapsed(seconds) == text


def test_bars_are_as_high_as_values() -> None:
    assert spark([]) == ""
    assert spark([0, 0]) == "··"
    assert spark([0, 0.001, 50, 100]) == "·▁▅█"
