from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, Raw

from penstock.desk.verbs import (
    MAX_FREE_BYTES,
    SIGNED,
    Promise,
    call,
    find,
    unpacked,
    verb,
    verbs_of,
)
from penstock.errors import InvalidArgument, TooLarge, UnknownVerb
from tests.unit.desk.office import Office


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


Few = Annotated[list[bytes], Meta(max_length=3)]


class Shelf:
    @verb("put")
    def put(self, *, name: str, things: Few = [], plan: object = None) -> None:  # noqa: B006
        pass


PUT = verbs_of(Shelf())["put"]


def packed(**arguments: object) -> Raw:
    return Raw(msgspec.msgpack.encode(arguments))


@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "a"},
        {"name": "a", "things": [b"x" * (1 << 20)], "plan": None},
        {"name": "a" * (1 << 20), "plan": {"a": [1, {"b": "c"}]}},
        {"name": "a", "plan": [0] * (MAX_FREE_BYTES - 5)},
    ],
)
def test_what_fits_the_verb_comes_as_it_was_said(arguments: dict[str, object]) -> None:
    assert unpacked(PUT, packed(**arguments)) == arguments


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "there has to be an argument `name`"),
        ({"name": "a", "x": 1}, "there is no argument `x`"),
        ({"name": ["a"]}, "argument `name`"),
        ({"name": "a", "things": [b""] * 4}, "length <= 3 .argument `things`"),
        ({"name": "a", "things": [[]]}, "expected `bytes`"),
    ],
)
def test_what_does_not_fit_the_verb_is_refused(
    arguments: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidArgument, match=said):
        unpacked(PUT, packed(**arguments))


@pytest.mark.parametrize("data", [b"\x90", b"\x81\xa4name\xa1\xff", b"\x91" * 5000])
def test_what_is_no_map_of_names_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidArgument):
        unpacked(PUT, Raw(data))


def test_what_may_be_anything_has_a_limit_in_bytes() -> None:
    with pytest.raises(TooLarge, match="argument plan"):
        unpacked(PUT, packed(name="a", plan=[0] * MAX_FREE_BYTES))


def test_every_list_that_a_verb_takes_has_a_limit(office: Office) -> None:
    """Or else a message could have a value for each of its bytes."""
    found = 0
    for name, one in office.desk.verbs.items():
        for kind in lists_in(msgspec.inspect.type_info(one.arguments)):
            assert kind.max_length is not None, name
            found += 1

    assert found >= 5


def lists_in(kind: Any) -> Iterator[Any]:
    """All lists and maps in a type."""
    if isinstance(kind, msgspec.inspect.StructType):
        for field in kind.fields:
            yield from lists_in(field.type)
    elif isinstance(kind, msgspec.inspect.UnionType):
        for one in kind.types:
            yield from lists_in(one)
    elif isinstance(kind, msgspec.inspect.ListType | msgspec.inspect.DictType):
        yield kind
    assert not isinstance(kind, msgspec.inspect.VarTupleType | msgspec.inspect.SetType)
