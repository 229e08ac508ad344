from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from penstock.client import connect
from penstock.client.feed import Feed
from penstock.supervisor.figures import (
    Counted,
    StageFigures,
    StageRates,
    Total,
    counted,
    letters_of,
    processed,
)
from penstock.supervisor.part import Part, Places
from penstock.supervisor.process import PartState, Process
from tests.local_server import local_server


def process(tmp_path: Path, name: str, **status: Any) -> Process:
    places = Places(tmp_path)
    places.make()
    if status:
        told = {"pid": None, "at_ms": time.time_ns() // 1_000_000, **status}
        places.status(name).write_text(json.dumps(told))
    return Process(Part(name=name, command=("true",)), places)


def test_rates_are_of_the_last_seconds() -> None:
    rates = StageRates()

    assert rates.rate("a", 0, 0.0) is None
    assert rates.rate("a", 100, 1.0) == 100
    assert rates.rate("a", 600, 6.0) == 100
    assert rates.rate("a", 600, 11.0) == 50
    assert rates.rate("a", 600, 21.0) == 0
    assert rates.rate("a", None, 22.0) is None


def test_what_stood_for_long_is_quick_as_soon_as_it_moves() -> None:
    rates = StageRates()

    found = [rates.rate("a", max(0, now - 50) * 100, float(now)) for now in range(54)]

    assert found[:2] == [None, 0.0]
    assert found[50:] == [0.0, 100.0, 100.0, 100.0]


def test_what_goes_on_by_large_steps_is_not_taken_to_stand_still() -> None:
    rates = StageRates()

    found = [rates.rate("a", 7000 * (now // 7), float(now)) for now in range(30)]

    assert min(one for one in found[8:] if one is not None) >= 500
    assert found[28] == 1000


def test_a_part_that_counts_anew_has_no_negative_rate() -> None:
    rates = StageRates()
    rates.rate("a", 1000, 0.0)

    assert rates.rate("a", 10, 1.0) is None
    assert rates.rate("a", 30, 2.0) == 20


def test_a_total_goes_on_when_a_part_counts_anew() -> None:
    total = Total()

    totals = [total.total(count) for count in (None, 0, 5, 9, 2, 2, None, 4, 0)]

    assert totals == [None, 0, 5, 9, 11, 11, 11, 13, 13]


def test_stages_are_told_by_their_parts(tmp_path: Path) -> None:
    figures = StageFigures()
    figures.counted = Counted(
        {"firehose": 90, "tweets": 5, "$errors": 7},
        {
            ("up-tweets", "tweets"): (4, 1),
            ("spark:pipeline-tweets", "firehose"): (9, 81),
        },
    )
    parts = [
        process(tmp_path, "broker"),
        process(tmp_path, "source", events=100),
        process(tmp_path, "ingest", events=90, lag=10, errors=2),
        process(tmp_path, "cdc", events=5, lag=3),
        process(tmp_path, "subscriber tweets"),
        process(tmp_path, "spark"),
    ]

    rows = {row.name: row for row in figures.rows(parts, 0.0)}

    assert {name: (row.events, row.lag) for name, row in rows.items()} == {
        "broker": (95, None),
        "source": (100, None),
        "ingest": (90, 10),
        "cdc": (5, 3),
        "subscriber tweets": (4, 1),
        "spark": (None, None),
    }
    assert rows["ingest"].errors == 2
    assert rows["spark"].state is PartState.WAITING


def test_what_earlier_runs_did_is_told_apart(tmp_path: Path) -> None:
    figures = StageFigures()
    figures.counted = Counted({"firehose": 90}, {("up-tweets", "tweets"): (4, 0)})
    parts = [
        process(tmp_path, "broker"),
        process(tmp_path, "ingest", events=90),
        process(tmp_path, "subscriber tweets"),
        process(tmp_path, "cdc"),
    ]
    figures.begin(parts)
    figures.counted = Counted({"firehose": 97}, {("up-tweets", "tweets"): (4, 0)})
    parts = [*parts[:3], process(tmp_path, "cdc", events=6)]

    rows = figures.rows(parts, 1.0)

    assert {row.name: (row.events, row.new) for row in rows} == {
        "broker": (97, 7),
        "ingest": (90, 0),
        "subscriber tweets": (4, 0),
        "cdc": (6, 6),
    }


def test_what_another_process_said_or_one_long_ago_is_no_lag(tmp_path: Path) -> None:
    parts = [
        process(tmp_path, "cdc", events=5, lag=0, pid=1),
        process(tmp_path, "ingest", events=6, lag=0, at_ms=1),
    ]

    rows = StageFigures().rows(parts, 0.0)

    assert [(row.events, row.lag) for row in rows] == [(5, None), (6, None)]


def test_spark_is_as_far_as_its_query() -> None:
    places = {("other", "firehose"): (1, 89)}
    assert processed(Counted({}, places)) == (None, None)

    places["spark:pipeline-firehose", "firehose"] = (70, 20)

    assert processed(Counted({}, places)) == (70, 20)


def test_the_broker_is_asked(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server, connect(server.data) as client:
        client.publish("t", [b"1", b"2", b"3"])
        with client.subscribe("t", "me", start="earliest", window=2):
            found = counted(client)

    assert found.topics["t"] == 3
    assert found.places["me", "t"] == (0, 3)


def test_dead_letters_are_counted_where_they_are(tmp_path: Path) -> None:
    with local_server(tmp_path / "data") as server:
        with Feed(server.data, "f", gateway="ingest sse") as feed:
            feed.put([], note="1", letters=[("panic", b"1"), ("no JSON", b"2")])
        with Feed(server.data, "g", gateway="cdc") as feed:
            feed.put([], note="1", letters=[("panic", b"1")])

        with connect(server.data) as client:
            assert letters_of(client, "ingest sse") == 2
