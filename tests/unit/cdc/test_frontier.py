from __future__ import annotations

from penstock.cdc.frontier import Frontier


def up_to(last: str) -> bool:
    return last >= "m"


def test_nothing_is_told_at_the_beginning() -> None:
    frontier = Frontier.of("")

    assert frontier.next_of(["a", "b"]) == "a"
    assert not frontier.holds("a", up_to)


def test_it_moves_through_one_collection_after_the_other() -> None:
    frontier = Frontier().moved("a", "m", 5).finished("a").moved("b", "l", 2)

    assert frontier.count == 7
    assert frontier.next_of(["c", "a", "b"]) == "b"
    assert frontier.holds("a", lambda _: False)
    assert not frontier.holds("b", up_to)
    assert frontier.moved("b", "m", 1).holds("b", up_to)
    assert not frontier.holds("c", up_to)
    assert frontier.finished("b").finished("c").next_of(["c", "a", "b"]) is None


def test_it_is_read_as_it_was_written() -> None:
    for frontier in (Frontier(), Frontier(("a",), "b", 'x"y', 7)):
        assert Frontier.of(frontier.text()) == frontier


def test_other_collections_may_be_wanted_the_next_time() -> None:
    frontier = Frontier(("a",), "b", "m", 7)

    assert frontier.next_of(["a", "c"]) == "c"
