"""Documents as Extended JSON: ours is that of the driver, to the letter."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from bson import Binary, Code, Decimal128, Int64, MinKey, ObjectId, Regex, Timestamp
from bson.json_util import RELAXED_JSON_OPTIONS, dumps

from penstock.cdc.mongo import MongoCapture

CAPTURE = MongoCapture("mongodb://127.0.0.1/shop", "shop", ["orders"])


@pytest.mark.parametrize(
    "value",
    [
        *("", 'a "quoted" word\n', "é 東京 😀", "\x00\u2028", 0, -1, 1 << 31),
        *(Int64(5), Int64(1 << 62), 0.1, -0.0, 1e300, True, False, None),
        *(float("nan"), float("inf"), float("-inf")),
        *(Code("x = 1"), Binary(b"x"), Decimal128("1.50"), ObjectId("5" * 24)),
        *(
            datetime(2021, 10, 1, tzinfo=UTC),
            Regex("a", "i"),
            Timestamp(5, 6),
            MinKey(),
        ),
        *([], {}, [None, [Code("y")]], {"a": {"b": [1, {"c": float("nan")}]}}),
    ],
    ids=repr,
)
def test_a_document_is_what_the_driver_makes_of_it(value: Any) -> None:
    document = {"_id": 1, "value": value, "é": [value, {"again": value}]}

    told = dumps(document, json_options=RELAXED_JSON_OPTIONS, ensure_ascii=False)

    assert bytes(CAPTURE.json(document)) == told.encode()
