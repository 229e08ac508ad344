from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest

from penstock.schema import Checker, mock, schema_of

Naive = Annotated[dt.datetime, msgspec.Meta(tz=False)]
NaiveTime = Annotated[dt.time, msgspec.Meta(tz=False)]
Aware = Annotated[dt.datetime, msgspec.Meta(tz=True)]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Inner(msgspec.Struct, tag="inner"):
    at: dt.datetime


class Other(msgspec.Struct, tag="other"):
    raw: bytes


class Row(msgspec.Struct, array_like=True, tag="row"):
    at: dt.time
    raw: bytes = b""


class Tree(msgspec.Struct):
    at: dt.datetime
    below: list[Tree] = []


class Renamed(msgspec.Struct, rename="camel"):
    made_at: Annotated[dt.datetime, msgspec.Meta(description="when")]


@dataclass
class Data:
    at: dt.datetime | None


class Dict(TypedDict):
    at: dt.time


class Pair(NamedTuple):
    at: dt.datetime
    raw: bytes


KINDS: list[Any] = [
    dt.datetime,
    dt.time,
    Naive,
    NaiveTime,
    Aware,
    list[dt.datetime],
    tuple[int, dt.time],
    dict[int, str],
    dict[UUID, int],
    dict[dt.date, int],
    dict[dt.datetime, int],
    dict[Colour, int],
    dict[Level, int],
    dict[Literal["a", "b"], int],
    dict[str, dict[int, bytes]],
    Annotated[bytes, msgspec.Meta(min_length=4, max_length=9)] | None,
    dt.datetime | int | None,
    Inner,
    Inner | Other,
    Inner | Other | None,
    Inner | Other | dt.datetime | list[dt.time] | None,
    Row,
    Tree,
    Renamed,
    Data,
    Dict,
    Pair,
    set[dt.datetime],
    Decimal,
]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_made_up_values_are_read_by_the_type(kind: Any) -> None:
    schema = schema_of(msgspec.defstruct("Holder", [("f", kind)]))
    assert schema is not None
    decoder = msgspec.json.Decoder(msgspec.defstruct("Holder", [("f", kind)]))

    for document in mock(schema, 1, 30):
        decoder.decode(msgspec.json.encode(document))


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (dt.datetime, "2024-05-01T10:00:00", "soon"),
        (dt.time, "10:00:00", "noon"),
        (Naive, "2024-05-01T10:00:00", "2024-05-01T10:00:00Z"),
        (NaiveTime, "10:00:00.5", "10:00:00-05:00"),
        (Decimal, "1.50", "much"),
        (list[dt.datetime], ["2024-05-01T10:00:00Z"], ["soon"]),
        (tuple[int, dt.time], [1, "10:00:00"], [1, "noon"]),
        (dt.datetime | int, "2024-05-01T10:00:00Z", "soon"),
        (Inner | Other, {"type": "other", "raw": "AAAA"}, {"type": "other", "raw": 1}),
        (Inner | Other, {"type": "other", "raw": ""}, {"type": "other", "raw": "A"}),
        (Row, ["row", "10:00:00", "AA=="], ["row", "10:00:00", "A"]),
        (Data, {"at": None}, {"at": "soon"}),
        (Dict, {"at": "10:00:00"}, {"at": "noon"}),
        (Pair, ["2024-05-01T10:00:00Z", ""], ["soon", ""]),
        (Renamed, {"madeAt": "2024-05-01T10:00:00Z"}, {"madeAt": "soon"}),
        (dict[int, str], {"0": "a", "-7": "b"}, {"one": "a"}),
        (dict[int, str], {}, {"007": "a"}),
        (dict[Level, int], {"1": 1}, {"3": 1}),
        (
            Tree,
            {"at": "2024-05-01T10:00:00", "below": []},
            {"at": "2024-05-01T10:00:00", "below": [{"at": "soon"}]},
        ),
    ],
)
def test_what_the_type_cannot_read_does_not_fit(
    kind: Any, good: object, bad: object
) -> None:
    holder = msgspec.defstruct("Holder", [("f", kind)])
    schema = schema_of(holder)
    assert schema is not None
    checker, decoder = Checker(schema), msgspec.json.Decoder(holder)

    fine, wrong = (msgspec.json.encode({"f": one}) for one in (good, bad))

    decoder.decode(fine)
    assert checker.misfit(fine) is None
    with pytest.raises(msgspec.ValidationError):
        decoder.decode(wrong)
    assert checker.misfit(wrong) is not None


def test_keys_that_are_text_stay_as_they_are() -> None:
    assert schema_of(dict[str, int]) == (
        b'{"additionalProperties":{"type":"integer"},"type":"object"}'
    )
