from __future__ import annotations

import pytest

from penstock.spark.columns import arrow_schema
from penstock.spark.ddl import parse
from penstock.table.single import Single

FIELDS = list(
    arrow_schema(
        parse("n INT, at TIMESTAMP, d DECIMAL(9, 3), a ARRAY<BIGINT>, s STRING")
    )
)


@pytest.mark.parametrize(
    "payload",
    [
        b"{}",
        b'{"n": 1, "at": "2026-01-31T12:00:00Z", "d": 1.50, "a": [1, null]}',
        b'{"n": null, "s": "tz", "other": [{"a": 1.5}]}',
        b'{"other": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
)
def test_what_fits_stays_what_it_is(payload: bytes) -> None:
    assert Single(FIELDS).sound(payload) is payload


@pytest.mark.parametrize(
    ("payload", "written"),
    [
        (b'{"n": 5.0}', b'"n":5,'),
        (b'{"a": [1e3, null, 7]}', b'"a":[1000,null,7]'),
        (b'{"at": "2026-01-31t12:00:00z"}', b'"at":"2026-01-31T12:00:00Z"'),
        (b'{"n": 5.0, "d": 1.500}', b'"d":1.500'),
        (b'{"n": 5.0, "d": "1.500"}', b'"d":"1.500"'),
        (b'{"n": 5.0, "s": "t\\u00e4"}', '"s":"tä"'.encode()),
    ],
)
def test_what_arrow_does_not_know_is_written_anew(
    payload: bytes, written: bytes
) -> None:
    found = Single(FIELDS).sound(payload)

    assert found is not None
    assert written in found


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b'{"n": "1"}',
        b'{"n": 1.5}',
        b'{"n": true}',
        b'{"n": 2147483648}',
        b'{"a": [99999999999999999999]}',
        b'{"a": [1e30]}',
        b'{"at": 5}',
        b'{"other": NaN}',
        b'{"n": 5.0, "other": "\xff"}',
    ],
)
def test_what_does_not_fit_is_nothing(payload: bytes) -> None:
    assert Single(FIELDS).sound(payload) is None
