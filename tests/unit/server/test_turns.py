from __future__ import annotations

from collections import deque

import pytest

from penstock.server.turns import Turns


def filled(*keys: tuple[str, str], at_once: int = 100) -> Turns[str]:
    turns: Turns[str] = Turns(100, at_once)
    for number, key in enumerate(keys):
        turns.put(key, f"{key[0]}{key[1]}{number}")
    return turns


def served(turns: Turns[str]) -> list[str]:
    """All of them, each turn over before the next begins."""
    order = []
    while (item := turns.take()) is not None:
        order.append(item)
        turns.over((item[0], item[1]))
    return order


def test_addresses_take_turns_and_names_at_each() -> None:
    turns = filled(
        *[("a", "x")] * 3,
        ("a", "y"),
        *[("b", "x")] * 2,
        ("c", "x"),
    )

    assert served(turns) == ["ax0", "bx4", "cx6", "ay3", "bx5", "ax1", "ax2"]


def test_one_name_at_one_address_has_one_turn_at_a_time() -> None:
    turns = filled(("a", "x"), ("a", "x"), ("b", "x"))

    assert [turns.take() for _ in range(3)] == ["ax0", "bx2", None]
    turns.over(("a", "x"))
    assert turns.take() == "ax1"


def test_there_are_so_many_turns_at_once() -> None:
    turns = filled(("a", "x"), ("b", "x"), ("c", "x"), at_once=2)

    assert [turns.take() for _ in range(3)] == ["ax0", "bx1", None]
    turns.over(("b", "x"))
    assert turns.take() == "cx2"


def test_there_is_room_for_so_many_and_half_of_it_for_one_address() -> None:
    turns: Turns[int] = Turns(4, 1)
    turns.put(("a", "x"), 1)
    assert not turns.full(("a", "z"))
    turns.put(("a", "y"), 2)

    assert turns.full(("a", "z"))
    assert not turns.full(("b", "z"))
    turns.put(("b", "x"), 3)
    turns.put(("c", "x"), 4)
    assert turns.full(("d", "z"))


def test_a_turn_that_costs_nothing_waits_for_others_and_nobody_for_it() -> None:
    turns = filled(("a", "x"), ("b", "x"), at_once=1)
    for number in range(60):
        turns.put(("c", f"made up {number}"), f"free{number}", costs=False)
    turns.put(("d", "x"), "dx")

    assert [turns.take(), turns.take()] == ["ax0", None]
    turns.over(("a", "x"))
    assert [turns.take(), turns.take()] == ["bx1", None]
    turns.over(("b", "x"))
    assert [turns.take() for _ in range(3)] == ["free0", "dx", None]
    turns.over(("d", "x"))
    assert [turns.take() for _ in range(59)] == [f"free{n}" for n in range(1, 60)]


@pytest.mark.parametrize("costs", [True, False])
def test_a_name_waits_for_itself_whether_it_costs_something_or_not(
    *, costs: bool
) -> None:
    turns: Turns[str] = Turns(100, 2)
    for address in "aabbcd":
        turns.put((address, "x"), address, costs=costs)
    order = []
    under_way: deque[str] = deque()
    for _ in range(6):
        while (item := turns.take()) is not None:
            order.append(item)
            under_way.append(item)
        assert len(under_way) <= 2
        assert len(set(under_way)) == len(under_way)
        turns.over((under_way.popleft(), "x"))

    assert order == ["a", "b", "c", "d", "a", "b"]
    assert turns.take() is None


@pytest.mark.parametrize("costs", [True, False])
def test_a_name_has_the_same_room_whether_it_costs_something_or_not(
    *, costs: bool
) -> None:
    turns: Turns[int] = Turns(10, 1)
    turns.put(("a", "real"), 0)
    for number in range(1, 5):
        turns.put(("a", "x"), number, costs=costs)
    assert turns.full(("a", "x"))
    assert not turns.full(("b", "x"))
    for number in range(5, 10):
        turns.put(("b", "x"), number, costs=costs)
    assert turns.full(("c", "x"))

    assert turns.full(("a", "other")) is costs
    assert turns.full(("c", "other")) is costs


def test_what_was_served_leaves_nothing_behind() -> None:
    turns: Turns[tuple[str, str]] = Turns(100, 2)
    for number in range(60):
        key = "abc"[number % 3], "xyzw"[number % 4]
        turns.put(key, key, costs=number % 4 > 1)
    left = 60
    while left:
        begun = []
        while (item := turns.take()) is not None:
            begun.append(item)
        assert begun
        for item in begun:
            turns.over(item)
        left -= len(begun)

    kept = {name: one for name, one in vars(turns).items() if "most" not in name}
    assert not any(kept.values())
