from __future__ import annotations

import json

from tests.unit.cli.desk_run import DeskRun


def test_one_look_is_printed_where_nobody_can_watch(run: DeskRun) -> None:
    run.client.publish("orders", [b"a", b"b"])

    lines = run.lines("top")

    assert lines[0].startswith("Penstock ")
    assert lines[-1].split()[0] == "orders"
    assert len(run.lines("top", "--once")) == len(lines)


def test_one_look_is_one_object(run: DeskRun) -> None:
    run.client.publish("orders", [b"a", b"b"])

    (line,) = run.lines("top", "--json")

    look = json.loads(line)
    assert look["totals"] == {"in": 2, "out": 0}
    assert [row["name"] for row in look["topics"]] == ["orders"]


def test_without_a_server_the_files_are_looked_at(run: DeskRun) -> None:
    run.client.publish("orders", b"a")
    run.client.close()
    run.server.stop()

    result = run("top", "--json")

    assert result.exit_code == 0
    assert json.loads(result.stdout)["topics_count"] == 1
    assert "no server is running" in result.stderr
