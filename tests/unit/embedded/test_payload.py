from __future__ import annotations

import dataclasses
from typing import Any, TypedDict

import msgspec
import pytest

from penstock.embedded.payload import Codec, is_pydantic, plain, type_name
from penstock.errors import UnfitPayload


class Order(msgspec.Struct):
    total: int


class Picky(msgspec.Struct):
    total: int

    def __post_init__(self) -> None:
        if self.total < 0:
            raise LookupError("negative")


@dataclasses.dataclass
class Data:
    total: int


class Typed(TypedDict):
    total: int


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("type_", "value", "data"),
    [
        (bytes, b"\xff", b"\xff"),
        (Order, Order(1), b'{"total":1}'),
        (Data, Data(1), b'{"total":1}'),
        (Typed, {"total": 1}, b'{"total":1}'),
        (dict[str, int], {"a": 1}, b'{"a":1}'),
        (int | None, None, b"null"),
        (float, 1, b"1"),
        (str, "text", b'"text"'),
        (Any, [1, "a"], b'[1,"a"]'),
    ],
)
def test_a_value_becomes_bytes_and_back(type_: Any, value: Any, data: bytes) -> None:
    codec: Codec[Any] = Codec(type_)

    assert codec.encode("t", value) == data
    assert codec.decode("t", data) == value
    assert codec.raw is (type_ is bytes)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (bytes, "text"),
        (bytes, None),
        (Order, {"total": 1}),
        (Order, Data(1)),
        (Data, Order(1)),
        (Typed, {"total": "one"}),
        (Typed, {}),
        (int, "1"),
        (str, 1),
        (str, b"text"),
        (dict[str, int], {"a": object()}),
        (list[int], {"a": 1}),
    ],
)
def test_a_value_of_another_type_is_refused(type_: Any, value: Any) -> None:
    with pytest.raises(UnfitPayload, match="payload of t is no "):
        Codec(type_).encode("t", value)


@pytest.mark.parametrize(
    ("type_", "data", "where"),
    [
        (Order, b'{"total": "x"}', r"\$\.total"),
        (Order, b"{}", "total"),
        (Order, b"", "truncated"),
        (Order, b"\xff", "no Order"),
        (Picky, b'{"total": -1}', "negative"),
        (list[int], b"[1, null]", r"\$\[1\]"),
        (Any, b"[" * 100_000, "recursion"),
    ],
)
def test_bytes_that_do_not_fit_say_where(type_: Any, data: bytes, where: str) -> None:
    with pytest.raises(UnfitPayload, match=where):
        Codec(type_).decode("t", data)


def test_a_type_may_fail_as_it_likes() -> None:
    class Odd(msgspec.Struct):
        def __post_init__(self) -> None:
            raise Unspeakable

    with pytest.raises(UnfitPayload, match="Unspeakable"):
        Codec(Odd).decode("t", b"{}")


def test_pydantic_models_use_their_own_methods() -> None:
    # Any: it may not be installed.
    pydantic: Any = pytest.importorskip(
        "pydantic", reason="component: pydantic (not installed)"
    )

    class Model(pydantic.BaseModel):
        total: int

        @pydantic.field_validator("total")
        @classmethod
        def check(cls, total: int) -> int:
            if total > 10:
                raise KeyError("too much")
            return total

    codec: Codec[Any] = Codec(Model)

    assert codec.encode("t", Model(total=1)) == b'{"total":1}'
    assert codec.decode("t", b'{"total":1}') == Model(total=1)
    assert plain("t", Model(total=2)) == b'{"total":2}'
    assert is_pydantic(Model) and not is_pydantic(Order)
    for data in (b'{"total":"x"}', b'{"total":11}', b"{"):
        with pytest.raises(UnfitPayload):
            codec.decode("t", data)
    with pytest.raises(UnfitPayload):
        codec.encode("t", Order(1))


@pytest.mark.parametrize(
    ("value", "data"),
    [
        (b"raw", b"raw"),
        (bytearray(b"raw"), b"raw"),
        (memoryview(b"raw"), b"raw"),
        ("text é", "text é".encode()),
        ({"a": [1]}, b'{"a":[1]}'),
        (Order(3), b'{"total":3}'),
        (None, b"null"),
    ],
)
def test_without_a_type_bytes_and_text_stay_what_they_are(
    value: object, data: bytes
) -> None:
    found = plain("t", value)

    assert found == data
    assert type(found) is bytes


@pytest.mark.parametrize("value", [object(), "\ud800", {"a": object()}, {1, object()}])
def test_what_has_no_json_is_refused(value: object) -> None:
    with pytest.raises(UnfitPayload, match="JSON"):
        plain("t", value)


def test_types_have_names() -> None:
    assert type_name(Order) == "Order"
    assert type_name(int | str) == "int | str"


def test_pydantic_models_are_read_as_they_are_written() -> None:
    # Any: it may not be installed.
    pydantic: Any = pytest.importorskip(
        "pydantic", reason="component: pydantic (not installed)"
    )

    class Line(pydantic.BaseModel):
        cents: int = pydantic.Field(alias="price")

    class Model(pydantic.BaseModel):
        lines: list[Line] = pydantic.Field(alias="rows")
        total: float | None = pydantic.Field(None, alias="sum")

    codec: Codec[Any] = Codec(Model)
    value = Model(rows=[Line(price=3)])

    data = codec.encode("t", value)

    assert data == b'{"rows":[{"price":3}],"sum":null}'
    assert codec.decode("t", data) == value
    assert plain("t", value) == data
    with pytest.raises(UnfitPayload, match="NaN"):
        codec.encode("t", Model(rows=[], sum=float("nan")))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'"text"', "text"),
        (b"text", "text"),
        (b"", ""),
        (b"5", "5"),
        (b'{"a": 1}', '{"a": 1}'),
        (b'"half', '"half'),
        ("é".encode(), "é"),
    ],
)
def test_text_is_a_json_string_or_what_is_there(data: bytes, text: str) -> None:
    assert Codec(str).decode("t", data) == text


def test_bytes_that_are_no_text_are_none() -> None:
    for data in (b"\xff", b'"\xff"'):
        with pytest.raises(UnfitPayload, match="no str"):
            Codec(str).decode("t", data)


class Measured(msgspec.Struct):
    value: float
    note: str | None = None


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_does_not_have_are_refused(number: float) -> None:
    for value in (number, [1.0, number], {"a": {"b": (number,)}}, Measured(number)):
        with pytest.raises(UnfitPayload, match="NaN"):
            plain("t", value)
    with pytest.raises(UnfitPayload, match="NaN"):
        Codec(Measured).encode("t", Measured(number))
    with pytest.raises(UnfitPayload, match="NaN"):
        Codec(float).encode("t", number)

    assert Codec(Measured).encode("t", Measured(1.0)) == b'{"value":1.0,"note":null}'
