from __future__ import annotations

from typing import Annotated

import pytest
from msgspec import Meta

from penstock.desk.verbs import SIGNED, Promise, call, find, verb, verbs_of
from penstock.errors import InvalidArgument, UnknownVerb


class Counter:
    @verb("add", Promise.STORED)
    def add(self, *, number: Annotated[int, Meta(ge=0)], twice: bool = False) -> int:
        return number * 2 if twice else number

    @verb("zero")
    def zero(self) -> int:
        return 0

    def hidden(self) -> int:
        return 1


VERBS = verbs_of(Counter())


def test_only_marked_methods_are_verbs() -> None:
    assert sorted(VERBS) == ["add", "zero"]
    assert VERBS["add"].promise is Promise.STORED
    assert VERBS["zero"].promise is Promise.NOTHING


def test_arguments_reach_the_method_and_defaults_stay() -> None:
    assert call(VERBS["add"], {"number": 3}) == 3
    assert call(VERBS["add"], {"number": 3, "twice": True}) == 6
    assert call(VERBS["zero"], {}) == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "add: there has to be an argument `number`"),
        ({"number": 1, "x": 2}, "add: there is no argument `x`"),
        ({"number": "1"}, "add: expected `int`, got `str` (argument `number`)"),
        ({"number": -1}, "add: expected `int` >= 0 (argument `number`)"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        call(VERBS["add"], arguments)

    assert str(caught.value) == text


def test_an_unknown_verb_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownVerb, match="did you mean add?"):
        find(VERBS, "ad")
    with pytest.raises(UnknownVerb, match="^nothing is called 'qqqq'$"):
        find(VERBS, "qqqq")


def test_verbs_that_are_told_who_asks_are_known() -> None:
    class Signed:
        @verb("test.signed")
        def signed(self, *, by: str = "") -> str:
            return by

        @verb("test.unsigned")
        def unsigned(self, *, buy: str = "") -> str:
            return buy

    assert "test.signed" in SIGNED
    assert "test.unsigned" not in SIGNED
