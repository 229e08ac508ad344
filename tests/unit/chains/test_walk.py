from __future__ import annotations

import pytest

from penstock.chains import ChainQuestion
from penstock.chains import chains as chains_module
from penstock.errors import UnknownEvent, UnknownTopic
from tests.unit.chains.scene import Scene


@pytest.fixture
def orders(scene: Scene) -> Scene:
    """order -> (payment -> shipping, stock)"""
    scene.publish("orders", ids=["order"])
    scene.publish("payments", ids=["payment"], parents=["order"])
    scene.publish("stock", ids=["stock"], parents=["order"])
    scene.publish("shipping", ids=["shipping"], parents=["payment"])
    return scene


def test_an_event_is_shown_with_causes_and_effects(orders: Scene) -> None:
    assert orders.ask("payment") == {
        "payments:0": 0,
        "orders:0": -1,
        "shipping:0": 1,
    }


def test_a_place_is_as_good_as_an_id(orders: Scene) -> None:
    assert orders.ask(topic="payments", offset=0) == orders.ask("payment")


def test_one_direction_can_be_asked_for(orders: Scene) -> None:
    assert orders.ask("payment", direction="up") == {"payments:0": 0, "orders:0": -1}
    assert orders.ask("payment", direction="down") == {
        "payments:0": 0,
        "shipping:0": 1,
    }


def test_the_whole_chain_begins_at_the_first_cause(orders: Scene) -> None:
    assert orders.ask("shipping", whole=True) == {
        "shipping:0": 0,
        "payments:0": -1,
        "orders:0": -2,
        "stock:0": -1,
    }


def said(scene: Scene) -> str | None:
    return scene.cut


def test_the_depth_ends_it_and_is_said(orders: Scene) -> None:
    assert orders.ask("order", depth=1) == {
        "orders:0": 0,
        "payments:0": 1,
        "stock:0": 1,
    }
    assert said(orders) == "depth"
    assert len(orders.ask("order", depth=2)) == 4
    assert said(orders) is None
    assert len(orders.ask("shipping", depth=1)) == 2
    assert said(orders) == "depth"


def test_the_limit_ends_it_and_is_said(orders: Scene) -> None:
    assert len(orders.ask("order", limit=3)) == 3
    assert said(orders) == "limit"
    assert len(orders.ask("order", limit=4)) == 4
    assert said(orders) is None


def test_two_events_with_one_id_are_two_events(scene: Scene) -> None:
    scene.publish("a", 2, ids=["x", "x"], parents=["p", "q"])
    scene.publish("b", ids=["p"])
    scene.publish("c", parents=["x"])

    assert scene.ask("x") == {"a:0": 0, "a:1": 0, "b:0": -1, "c:0": 1}


def test_circles_end(scene: Scene) -> None:
    scene.publish("a", 2, ids=["x", "y"], parents=["y", "x"])
    scene.publish("b", ids=["self"], parents=["self"])
    scene.publish("c", parents=["y"])

    assert scene.ask("x") == {"a:0": 0, "a:1": -1, "c:0": 2}
    assert scene.ask("self") == {"b:0": 0}
    assert scene.ask("x", whole=True) == {"a:0": 0, "a:1": -1, "c:0": 2}


def test_a_cause_that_is_gone_ends_the_way_up(orders: Scene) -> None:
    orders.fill()
    orders.log.delete_topic("payments")

    assert orders.ask("shipping") == {"shipping:0": 0}
    assert orders.ask("order") == {"orders:0": 0, "stock:0": 1}


def test_what_nobody_knows_is_an_error(orders: Scene) -> None:
    with pytest.raises(UnknownEvent, match="there is no event none"):
        orders.ask("none")
    with pytest.raises(UnknownEvent, match="there is no event orders:5"):
        orders.ask(topic="orders", offset=5)
    with pytest.raises(UnknownTopic):
        orders.ask(topic="none", offset=5)


def test_a_long_chain_is_found_in_many_bounded_steps(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains_module, "STEP_EFFORT", 200)
    for number in range(100):
        scene.publish("a", ids=[f"e{number}"], parents=[f"e{number - 1}"])
    number, walk = scene.chains.ask(ChainQuestion(id="e0"))
    pages = []
    while not walk.done:
        pages.append(len(walk.take()))
        scene.chains.go_on(number)

    assert sum(pages) + len(walk.take()) == 100
    assert len(pages) > 30
    assert max(pages) < 10


def test_an_answer_covers_what_was_there_when_it_was_asked(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chains_module, "STEP_EFFORT", 50)
    for _ in range(50):
        scene.publish("a", parents=["x"])
    scene.publish("b", ids=["x"])
    number, walk = scene.chains.ask(ChainQuestion(id="x"))
    found = len(walk.take())
    while not walk.done:
        scene.publish("c", parents=["other"])
        scene.chains.go_on(number)
        found += len(walk.take())

    assert found == 51
