from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from penstock.chains import chains as chains_module
from penstock.desk import chains as desk_chains
from tests.unit.cli.desk_run import DeskRun


@pytest.fixture
def shop(run: DeskRun) -> DeskRun:
    """order -> pay -> ship; the order is named like a place."""
    run.client.publish("orders", [b'{"n": 1}'], ids=["order:1"])
    run.client.publish("pay", [b"\xff"], ids=["pay"], parents=["order:1"])
    run.client.publish("ship", [b"s"], ids=["ship"], parents=["pay"])
    return run


def test_a_chain_is_drawn_as_a_tree(shop: DeskRun) -> None:
    lines = shop.lines("chain", "pay")

    assert [line.split("  ")[0] for line in lines] == ["orders:0", "└─ ▶ pay:0", ""]
    assert lines[2].startswith("   └─ ship:0  ship  +")


def test_a_place_is_tried_where_no_event_has_the_id(shop: DeskRun) -> None:
    assert shop.lines("chain", "ship:0") == shop.lines("chain", "ship")
    assert shop.lines("chain", "order:1")[0].startswith("▶ orders:0")


def test_json_has_all_there_is(shop: DeskRun) -> None:
    (line,) = shop.lines("chain", "pay", "--json")

    found = json.loads(line)
    assert (found["cut"], found["behind"]) == (None, 0)
    assert [(one["id"], one["level"]) for one in found["events"]] == [
        ("pay", 0),
        ("order:1", -1),
        ("ship", 1),
    ]
    assert found["events"][1]["payload"] == '{"n": 1}'
    assert found["events"][0]["payload"] == "\ufffd"


def test_one_way_can_be_shown(shop: DeskRun) -> None:
    assert len(shop.lines("chain", "pay", "--up")) == 2
    assert len(shop.lines("chain", "pay", "--down")) == 2
    assert len(shop.lines("chain", "ship", "--whole", "--down")) == 3
    assert "exclude" in shop.refused("chain", "pay", "--up", "--down")
    assert "exclude" in shop.refused("chain", "pay", "--up", "--whole")


def test_a_cut_is_said(shop: DeskRun) -> None:
    result = shop("chain", "order:1", "--depth", "1")

    assert len(result.stdout.splitlines()) == 2
    assert result.stderr == "note: there are more: cut at --depth\n"
    assert shop("chain", "order:1", "--limit", "1").stderr.endswith("--limit\n")


def test_parts_of_an_answer_become_one(
    shop: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains_module, "STEP_EFFORT", 1)

    assert len(shop.lines("chain", "order:1")) == 3


def test_an_index_that_is_behind_is_said(
    shop: DeskRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = desk_chains.ChainDesk._page

    def behind(self: object, *arguments: object) -> object:
        return replace(page(self, *arguments), behind=3)  # type: ignore[arg-type]

    monkeypatch.setattr(desk_chains.ChainDesk, "_page", behind)

    result = shop("chain", "pay")

    assert result.stderr == "note: 3 events are not indexed yet, and not looked at\n"


def test_what_is_not_there_is_refused(shop: DeskRun) -> None:
    assert shop.refused("chain", "none").startswith("error: there is no event none\n")
    assert shop.refused("chain", "ship:9").startswith("error: there is no event ship:9")
    assert shop.refused("chain", "no:1") == "error: topic no does not exist\n"


def test_it_works_on_files_without_a_server(shop: DeskRun) -> None:
    shop.server.stop()

    result = shop("chain", "pay")

    assert len(result.stdout.splitlines()) == 3
    assert "working on its files" in result.stderr
