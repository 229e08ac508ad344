from __future__ import annotations

import io

from rich.console import Console

from penstock.supervisor.figures import StageCounts
from penstock.supervisor.process import PartState
from penstock.supervisor.table import LINE_S, LiveTable, PlainLines, number

ROWS = [
    StageCounts(
        name="broker", state=PartState.READY, events=1234567, rate=999.6, lag=None
    ),
    StageCounts(
        name="spark",
        state=PartState.PAUSED,
        events=10,
        rate=0.0,
        lag=42,
        restarts=2,
        errors=1,
        note="[x] it broke",
    ),
]


LINES = [
    "up",
    "  broker    1 000/s  lag       -",
    "  spark         0/s  lag      42  [x] it broke, restarted 2x, 1 error",
]


def test_the_table_shows_every_figure() -> None:
    output = io.StringIO()
    console = Console(file=output, width=120, force_terminal=False)

    with LiveTable(console) as table:
        table.show(ROWS, "penstock up, 5 s", 0.0)

    text = output.getvalue()
    for part in (
        "penstock up, 5 s",
        "1 234 567",
        "1 000",
        "restarting",
        "[x] it broke, restarted 2x, 1 error",
    ):
        assert part in text
    assert "42" in text.split("spark")[1]


def test_plain_lines_come_now_and_then() -> None:
    said: list[str] = []
    with PlainLines(said.append) as lines:
        lines.show(ROWS, "up", 0.0)
        lines.show(ROWS, "up", LINE_S / 2)
        lines.show(ROWS, "up", LINE_S)

    assert said == [
        "broker is ready",
        "spark is restarting: [x] it broke",
        *LINES,
        *LINES,
    ]


LINK = "dashboard: http://127.0.0.1:8420/#token=pk_" + "x" * 43


def test_what_stands_below_the_heading_is_said_once() -> None:
    said: list[str] = []
    with PlainLines(said.append) as lines:
        for look in range(3):
            lines.show(ROWS, f"up\n{LINK}", look * LINE_S)

    assert said.count(LINK) == 1
    assert said[-3:] == LINES


def test_a_link_is_not_broken_where_the_table_ends() -> None:
    output = io.StringIO()
    console = Console(file=output, width=120, force_terminal=False)

    with LiveTable(console) as table:
        table.show(ROWS[:1], f"up\n{LINK}", 0.0)

    assert LINK in output.getvalue()


def test_numbers_are_easy_to_read() -> None:
    assert [number(one) for one in (None, 0, 999, 1000)] == ["-", "0", "999", "1 000"]


def test_the_table_fits_a_terminal_of_100_columns() -> None:
    output = io.StringIO()
    console = Console(file=output, width=100, force_terminal=False)
    rows = [
        StageCounts(
            name="subscriber users_engagements",
            state=PartState.STARTING,
            events=123_456_789,
            rate=12_345.0,
            lag=1_234_567,
            note="batch 1234, 12 s",
        )
    ]

    with LiveTable(console) as table:
        table.show(rows, "penstock up, 5 s", 0.0)

    (line,) = [one for one in output.getvalue().splitlines() if "users" in one]
    for part in (rows[0].name, "starting", "123 456 789", "12 345", "1 234 567"):
        assert part in line
    assert rows[0].note in line
