from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli import schemas
from penstock.client import plan
from tests.unit.cli.desk_run import DeskRun

ORDER = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["id"],
}


@pytest.fixture
def order(tmp_path: Path) -> str:
    return written(tmp_path, "order.json", ORDER)


def written(folder: Path, name: str, schema: object) -> str:
    (folder / name).write_text(json.dumps(schema))
    return str(folder / name)


def test_without_schemas_it_says_what_to_do(run: DeskRun) -> None:
    (line,) = run.lines("schemas", "list")

    assert line.startswith("no schemas yet")
    assert run.lines("schemas", "list", "--json") == ["[]"]


def test_a_schema_is_registered_listed_and_shown(run: DeskRun, order: str) -> None:
    (done,) = run.lines("schemas", "register", "orders", order, "--type", "Order")
    (again,) = run.lines("schemas", "register", "orders", order)

    heading, row = run.lines("schemas", "list")
    shown = run.lines("schemas", "show", "orders")

    assert done == "registered version 1 of orders, mode backward"
    assert again.startswith("nothing new")
    assert heading.split() == ["TOPIC", "VERSION", "MODE", "TYPE", "SINCE", "BY"]
    assert row.split()[:4] == ["orders", "1", "backward", "Order"]
    assert shown[0].split() == ["topic", "orders"]
    assert json.loads("".join(shown[shown.index("{") :])) == ORDER
    (line,) = run.lines("schemas", "show", "orders", "--json")
    assert json.loads(line)["schema"] == ORDER
    assert "schema      version 1 Order" in run.lines("topics", "show", "orders")


def test_a_long_list_comes_in_pages(
    run: DeskRun, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for topic in "abc":
        run.lines("schemas", "register", topic, order)
    monkeypatch.setattr(plan, "PAGE_ROWS", 2)

    (line,) = run.lines("schemas", "list", "--json")

    assert [row["topic"] for row in json.loads(line)] == ["a", "b", "c"]


def test_an_incompatible_schema_is_refused_with_the_path(
    run: DeskRun, order: str, tmp_path: Path
) -> None:
    run.lines("schemas", "register", "orders", order)
    stricter = written(tmp_path, "new.json", {**ORDER, "required": ["id", "note"]})

    said = run.refused("schemas", "register", "orders", stricter)

    assert "$.note: old events: may be missing, is required" in said
    assert "hint: " in said
    (done,) = run.lines(
        "schemas", "register", "orders", stricter, "--mode", "forward", "--json"
    )
    assert json.loads(done)["version"] == 2
    (old,) = run.lines("schemas", "show", "orders", "--version", "1", "--json")
    assert json.loads(old)["schema"] == ORDER


def test_a_candidate_and_payloads_are_checked(
    run: DeskRun, order: str, tmp_path: Path
) -> None:
    run.lines("schemas", "register", "orders", order)
    stricter = written(tmp_path, "new.json", {**ORDER, "required": ["id", "note"]})
    payloads = tmp_path / "orders.jsonl"
    payloads.write_bytes(b'{"id":1}\n{"id":"x"}\n\n' * 150)

    good = run.lines("schemas", "check", "orders", order)
    bad = run("schemas", "check", "orders", stricter)
    misfits = run("schemas", "check", "orders", "--payloads", str(payloads), "--json")
    first = run.lines("schemas", "check", "new", order)
    fit = run("schemas", "check", "orders", "--payloads", "-", input=b'{"id":1}\n')

    assert good == ["may follow version 1 of orders, mode backward"]
    assert (bad.exit_code, bad.stdout.startswith("$.note: ")) == (1, True)
    found = json.loads(misfits.stdout)["misfits"]
    assert misfits.exit_code == 1
    assert [row["index"] for row in found] == list(range(1, 300, 2))
    assert first == ["new has no schema yet: this may be the first version"]
    assert fit.stdout == "all payloads fit version 1 of orders\n"
    plain = run("schemas", "check", "orders", "--payloads", "-", input=b"no\n")
    assert plain.stdout.startswith("payload 0: $: is not JSON")
    assert "nothing to check" in run.refused("schemas", "check", "orders")


def test_payloads_are_sent_in_parts_that_fit_a_message() -> None:
    payloads = [b"x" * 600_000] * 3 + [b"y"] * 300

    parts, at = [], 0
    while at < len(payloads):
        parts.append(len(schemas._part(payloads, at)))
        at += parts[-1]

    assert parts == [2, 100, 100, 100, 1]


def test_data_is_made_up_and_published(run: DeskRun, order: str) -> None:
    run.lines("schemas", "register", "orders", order)

    lines = run.lines("schemas", "mock", "orders", "--count", "3", "--seed", "7")
    published = run.lines(
        *("schemas", "mock", "orders", "--count", "3", "--seed", "7", "--publish")
    )
    (listed,) = run.lines("schemas", "mock", "orders", "--version", "1", "--json")

    assert lines == published
    assert all(isinstance(json.loads(line)["id"], int) for line in lines)
    assert run.ask("topics.show", name="orders")["events"] == 3
    assert len(json.loads(listed)) == 1
    assert "has no schema" in run.refused("schemas", "mock", "nothing")


def test_a_mode_is_shown_and_set(run: DeskRun, order: str) -> None:
    run.lines("schemas", "register", "orders", order)

    assert run.lines("schemas", "mode", "orders") == ["mode of orders is backward"]
    assert run.lines("schemas", "mode", "orders", "full") == ["mode of orders is full"]
    (line,) = run.lines("schemas", "mode", "orders", "--json")
    assert json.loads(line) == {"topic": "orders", "mode": "full"}


def test_what_does_not_fit_is_refused_when_it_is_published(
    run: DeskRun, order: str
) -> None:
    run.lines("schemas", "register", "orders", order)

    said = run.refused("publish", "orders", '{"id":"x"}')

    assert '$.id: "x" is not of type "integer"' in said
    assert "penstock schemas show orders" in said
