from __future__ import annotations

import sys
import tracemalloc

import pytest

from penstock.model.topic_filter import matches
from penstock.sessions.filters import FilterTree, TopicTree

FILTERS = [
    *(
        "#",
        "+",
        "+/+",
        "a",
        "a/#",
        "a/+",
        "a/+/c",
        "a/b",
        "a/b/c",
        "a/b/c/#",
        "/",
        "/+",
    ),
    *("+/b/#", "a/b/c/d/e/f", "a/b/c/d/x", "$SYS/#", "$SYS/+", "$SYS/a/b", "a/$x"),
]
NAMES = [
    *("a", "a/b", "a/b/c", "a/b/c/d", "a/b/c/d/e/f", "a/b/c/d/x", "b", "b/b/b", "/"),
    *("/a", "a/", "", "$SYS", "$SYS/a", "$SYS/a/b", "a/$x", "$x", "a/+", "+/b", "#"),
]


def filled(filters: list[str]) -> FilterTree[str, int]:
    tree: FilterTree[str, int] = FilterTree()
    for index, filter in enumerate(filters):
        tree.add(filter, filter, index)
    return tree


@pytest.mark.parametrize("name", NAMES)
def test_a_name_finds_every_filter_that_matches(name: str) -> None:
    for filters in (FILTERS, FILTERS[::-1]):
        found = filled(filters).match(name)

        assert sorted(key for key, _ in found) == sorted(
            filter for filter in FILTERS if matches(filter, name)
        )


@pytest.mark.parametrize("filter", FILTERS)
def test_a_filter_finds_every_name_that_it_matches(filter: str) -> None:
    tree = TopicTree()
    for name in NAMES:
        tree.add(name)

    assert sorted(tree.match(filter)) == sorted(
        name for name in NAMES if matches(filter, name)
    )


def test_a_key_is_found_once_for_each_of_its_filters() -> None:
    tree: FilterTree[str, str] = FilterTree()
    tree.add("a/+", "me", "one")
    tree.add("a/#", "me", "two")
    tree.add("a/#", "you", "three")

    assert sorted(tree.match("a/b")) == [
        ("me", "one"),
        ("me", "two"),
        ("you", "three"),
    ]
    assert len(tree) == 3


def test_the_same_filter_and_key_is_replaced() -> None:
    tree: FilterTree[str, int] = FilterTree()
    tree.add("a", "me", 1)
    tree.add("a", "me", 2)

    assert tree.match("a") == [("me", 2)]
    assert len(tree) == 1


def test_what_is_removed_is_not_found_and_leaves_the_others() -> None:
    tree = filled(FILTERS)

    for index, filter in enumerate(FILTERS):
        assert tree.remove(filter, filter)
        assert not tree.remove(filter, filter)
        left = FILTERS[index + 1 :]
        assert len(tree) == len(left)
        for name in NAMES:
            assert {key for key, _ in tree.match(name)} == {
                filter for filter in left if matches(filter, name)
            }


def test_a_filter_stays_as_long_as_somebody_has_it() -> None:
    tree: FilterTree[str, int] = FilterTree()
    tree.add("a/+", "me", 1)
    tree.add("a/+", "you", 2)

    assert tree.remove("a/+", "me")

    assert tree.match("a/b") == [("you", 2)]


def test_a_name_is_compared_level_by_level() -> None:
    tree = TopicTree()
    tree.add("a/b/c")

    for filter in ("a/x/c", "a/b", "a/b/x", "a/b/c/d", "a/+/x", "x/#"):
        assert [*tree.match(filter)] == []
    assert [*tree.match("a/+/c/#")] == ["a/b/c"]


def test_what_was_never_there_cannot_be_removed() -> None:
    tree = filled(["a/b/c", "a/b/d"])

    for filter in ("a", "a/b", "a/b/c/d", "x", "a/x/c", "a/b/c"):
        assert not tree.remove(filter, "nobody")
    assert not tree.remove("a/b", "a/b")
    assert len(tree) == 2


def test_names_are_there_once_and_are_forgotten_once() -> None:
    tree = TopicTree()
    tree.add("a/b")
    tree.add("a/b")
    tree.add("a/b/c")

    tree.remove("a/b")
    tree.remove("a/b")
    tree.remove("x")
    tree.remove("a")

    assert len(tree) == 1
    assert [*tree.match("#")] == ["a/b/c"]


def test_a_tree_of_nothing_finds_nothing() -> None:
    assert filled([]).match("a") == []
    assert [*TopicTree().match("#")] == []


@pytest.mark.parametrize("text", ["/" * 65_535, "a/" * 32_767 + "b"])
def test_depth_is_no_danger(text: str) -> None:
    assert len(text.split("/")) > sys.getrecursionlimit()
    filters, topics = filled([text, text + "x", "#"]), TopicTree()
    for name in (text, text + "x"):
        topics.add(name)

    assert {key for key, _ in filters.match(text)} == {text, "#"}
    assert {*topics.match("#")} == {text, text + "x"}
    assert [*topics.match(text)] == [text]
    assert filters.remove(text, text)
    topics.remove(text)
    assert [*topics.match("#")] == [text + "x"]


@pytest.mark.slow
def test_a_deep_filter_costs_no_more_than_some_bytes_a_level() -> None:
    tracemalloc.start()
    try:
        tree = filled(["/" * 65_535 + str(index) for index in range(10)])
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(tree) == 10
    # The filter itself is 64 KiB, and its levels 8 bytes each, shared by all ten.
    assert used < 10 * 65_535 + 20 * 65_535


def test_thousands_of_names_are_found_by_their_filters() -> None:
    tree = TopicTree()
    for house in range(1000):
        for room in range(10):
            tree.add(f"house/{house}/room/{room}")

    found = sorted(tree.match("house/17/room/+"))

    assert len(tree) == 10_000
    assert found == [f"house/17/room/{room}" for room in range(10)]
    assert len([*tree.match("house/+/room/3")]) == 1000
    assert len([*tree.match("#")]) == 10_000
