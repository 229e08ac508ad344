from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta, Raw

from penstock.desk.packed import MAX_FREE_BYTES, unpacked
from penstock.desk.verbs import verb, verbs_of
from penstock.errors import InvalidArgument, TooLarge
from tests.unit.desk.office import Office

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
