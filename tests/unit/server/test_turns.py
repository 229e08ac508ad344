from __future__ import annotations

from penstock.server.turns import Turns


def filled(*keys: tuple[str, str], at_once: int | None = None) -> Turns[str]:
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
    assert len(turns) == 0


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
    turns: Turns[int] = Turns(4)
    turns.put(("a", "x"), 1)
    assert not turns.full("a")
    turns.put(("a", "y"), 2)

    assert turns.full("a")
    assert not turns.full("b")
    turns.put(("b", "x"), 3)
    turns.put(("c", "x"), 4)
    assert turns.full("d")
