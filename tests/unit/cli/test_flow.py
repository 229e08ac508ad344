from __future__ import annotations

import json

from tests.unit.cli.desk_run import DeskRun


def test_edges_are_a_table(run: DeskRun) -> None:
    run.client.publish("orders", [b"a", b"b"])
    with run.client.subscribe("orders", "billing", start="earliest") as subscription:
        assert subscription.next(5.0) is not None

        lines = run.lines("flow")

    assert lines[0].split() == ["FROM", "TO", "EVENTS/S", "COUNT", "TYPES"]
    edges = [line.split("  ") for line in lines[1:-1]]
    cells = [[cell.strip() for cell in edge if cell.strip()] for edge in edges]
    assert cells == [
        ["producer (unnamed)", "->", "topic orders", "-", "2", "-"],
        ["topic orders", "->", "subscriber billing", "-", "2", "-"],
    ]
    assert lines[-1] == "publishers and causes are those of 2 events looked at"


def test_the_flow_is_json(run: DeskRun) -> None:
    run.client.publish("orders", b"a")

    found = json.loads(run.lines("flow", "--json")[0])

    assert [one["id"] for one in found["nodes"]] == ["topic:orders", "producer:"]
    assert found["edges"][0]["from"] == "producer:"


def test_nothing_is_said_where_nothing_goes(run: DeskRun) -> None:
    assert run.lines("flow") == ["no events go anywhere"]
