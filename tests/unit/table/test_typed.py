from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.columns import arrow_schema
from penstock.spark.ddl import parse
from penstock.table import typed
from penstock.table.typed import JsonDecoder


@cache
def decoder(schema: str) -> JsonDecoder:
    return JsonDecoder(list(arrow_schema(parse(schema))))


def decoded(schema: str, *payloads: bytes) -> tuple[list[dict[str, Any]], list[int]]:
    """The rows, and which payloads fit none."""
    columns, bad = decoder(schema).decode(pa.array(payloads, pa.binary()))
    rows = pa.table(columns, parse(schema).fieldNames()).to_pylist()
    return rows, [] if bad is None else [n for n, one in enumerate(bad) if one.as_py()]


def test_fields_become_columns() -> None:
    rows, bad = decoded(
        "user STRING, n BIGINT, x DOUBLE, ok BOOLEAN",
        b'{"user": "ann", "n": 1, "x": 2, "ok": true, "more": {"a": []}}',
        b'{"n": null, "user": "\\u00e4\\n"}',
        b"{}",
    )

    assert rows == [
        {"user": "ann", "n": 1, "x": 2.0, "ok": True},
        {"user": "ä\n", "n": None, "x": None, "ok": None},
        {"user": None, "n": None, "x": None, "ok": None},
    ]
    assert bad == []


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        (
            "2026-01-31T12:00:00.123456+02:00",
            datetime(2026, 1, 31, 10, 0, 0, 123456, UTC),
        ),
        (
            "2026-01-31T12:00:00.123456789Z",
            datetime(2026, 1, 31, 12, 0, 0, 123456, UTC),
        ),
        ("2026-01-31 12:00:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("9999-12-31T00:00:00Z", datetime(9999, 12, 31, tzinfo=UTC)),
    ],
)
def test_moments(text: str, moment: datetime) -> None:
    rows, bad = decoded("at TIMESTAMP", json.dumps({"at": text}).encode())

    assert (rows, bad) == ([{"at": moment}], [])


def test_moments_of_all_kinds_in_one_chunk() -> None:
    rows, bad = decoded(
        "at TIMESTAMP",
        b'{"at": "2026-01-31T12:00:00.123456789Z"}',
        b'{"at": "9999-12-31T00:00:00Z"}',
        b'{"at": "soon"}',
    )

    assert bad == [2]
    assert [row["at"].year if row["at"] else None for row in rows] == [2026, 9999, None]


def test_dates_and_nested_fields() -> None:
    rows, bad = decoded(
        "on DATE, a ARRAY<STRUCT<d: DATE, n: INT>>",
        b'{"on": "2026-01-31", "a": [{"d": "2026-02-01", "n": 1}, {"n": 2}]}',
        b'{"on": "31.1.2026", "a": []}',
    )

    assert bad == [1]
    assert rows[0]["on"] == date(2026, 1, 31)
    assert rows[0]["a"] == [{"d": date(2026, 2, 1), "n": 1}, {"d": None, "n": 2}]


UNFIT = {
    "no JSON": b"hello",
    "nothing": b"",
    "a list": b"[1]",
    "a number": b"1",
    "torn": b'{"n": 1',
    "a tail": b'{"n": 1} x',
    "two": b'{"n": 1}{"n": 2}',
    "two lines": b'{"n": 1}\n{"n": 2}',
    "another type": b'{"n": "1"}',
    "a fraction": b'{"n": 1.5}',
    "too large": b'{"n": 99999999999999999999}',
    "not UTF-8": b'{"user": "\xff"}',
    "not UTF-8 elsewhere": b'{"other": "\xff"}',
    "half a pair": b'{"user": "\\ud800"}',
    "a line break in text": b'{"user": "a\nb"}',
    "a name twice": b'{"n": 1, "n": 2}',
    "open text": b'{"user": "x}',
    "deep": b'{"n": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "zero": b"\0",
}


@pytest.mark.parametrize("payload", UNFIT.values(), ids=UNFIT)
def test_a_payload_that_does_not_fit_stands_alone(payload: bytes) -> None:
    good = b'{"n": 7, "user": "u"}'

    rows, bad = decoded("user STRING, n BIGINT", good, payload, good, good)

    assert bad == [1]
    assert rows[1] == {"user": None, "n": None}
    assert rows[0] == rows[2] == rows[3] == {"user": "u", "n": 7}


def test_parts_of_documents_do_not_make_up_for_each_other() -> None:
    """Three documents in three payloads, but not one in each."""
    rows, bad = decoded("n BIGINT", b'{"n": 1', b"}", b'{"n": 2}{"n": 3}')

    assert bad == [0, 1, 2]
    assert rows == [{"n": None}] * 3


def test_white_space_around_is_no_fault() -> None:
    rows, bad = decoded("n BIGINT", b' {"n": 1}\n', b'\t{\n"n":\r\n2 }', b'{"n": 3}')

    assert ([row["n"] for row in rows], bad) == ([1, 2, 3], [])


def test_nothing_that_fits_is_a_table_of_nulls() -> None:
    rows, bad = decoded("n BIGINT, on DATE", b"x", b"y")

    assert (rows, bad) == ([{"n": None, "on": None}] * 2, [0, 1])


def test_fields_may_have_any_name() -> None:
    rows, _ = decoded(
        "`a b` INT, `class` STRING, `_x` INT", b'{"a b": 1, "class": "c"}', b"-"
    )

    assert rows[0] == {"a b": 1, "class": "c", "_x": None}


ALL_TYPES = (
    "s STRING, n BIGINT, i TINYINT, x DOUBLE, f FLOAT, d DECIMAL(6, 2), t TIMESTAMP, "
    "on DATE, b BOOLEAN, a ARRAY<FLOAT>, o STRUCT<n: INT, l: ARRAY<DECIMAL(4, 1)>>"
)
VALUES = (
    *("1", "-0", "5.0", "5.5", "1e3", "1e300", "1e400", "1.7976931348623159e308"),
    *("3.5e38", "128.0", "9223372036854775808", "9007199254740993.0", "1234.567"),
    *("NaN", "-NaN", "Infinity", "-Inf", "nan", "null", "true", "01", "1."),
    *(
        "[]",
        "[NaN]",
        "[1e300]",
        "[null, 1]",
        "[1,]",
        "{}",
        '{"n": 5.0}',
        '{"l": [NaN]}',
    ),
    *('{"n": null}', '{"n": 1, "n": 2}', '{"l": ["1.55"]}', '{"l": [1.5, null]}'),
    *('"x"', '""', '"NaN"', '": NaN"', '"1.5"', '"2026-01-31"', '"31.1.2026"'),
    *('"2026-01-31T12:00:00Z"', '"2026-01-31t12:00:00z"', '"9999-12-31t00:00:00.1z"'),
    *('"2026-01-31T12:00:00.123456789Z"', '"\\ud800"', '"\\q"', '"a\tb"', '"\xff"'),
    *("[" * depth + "]" * depth for depth in (900, 1000, 2000)),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", [one.name for one in parse(ALL_TYPES).fields] + ["z"])
def test_a_payload_fits_or_not_whatever_its_neighbours_are(name: str) -> None:
    for value in VALUES:
        payload = f'{{"{name}": {value}}}'.encode("latin-1")

        rows, bad = decoded(ALL_TYPES, payload)

        for others in ([b"junk"], [b'{"s": "u"}'] * 2, [b'{"n": 5.0}']):
            again, unfit = decoded(ALL_TYPES, payload, *others)
            assert (again[0], 0 in unfit) == (rows[0], 0 in bad), value[:99]


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "[1, NaN]", '{"a": Inf}'])
def test_what_is_no_json_is_corrupt_wherever_it_is(value: str) -> None:
    _, bad = decoded("n BIGINT", b'{"n": 1, "other": %b}' % value.encode())

    assert bad == [0]


def test_text_that_looks_like_a_number_that_is_none_is_text() -> None:
    rows, bad = decoded("s STRING", b'{"s": "a: NaN, Inf", "t": ["Infinity"]}')

    assert (rows, bad) == ([{"s": "a: NaN, Inf"}], [])


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 2, 3, 16])
def test_what_is_no_json_is_found_across_blocks(
    monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(typed, "_BLOCK", block)

    for value in (b"NaN", b"-Inf", b"Infinity"):
        for blanks in range(20):
            payload = b'{"z": %b%b}' % (b" " * blanks, value)
            assert decoded("n BIGINT", payload, b'{"n": 1}')[1] == [0]


def test_deep_fields_that_nobody_wants_are_no_fault() -> None:
    deep = b'{"n": 1, "other": %b%b}' % (b"[" * 2000, b"]" * 2000)

    rows, bad = decoded("n BIGINT", deep, b"junk")

    assert (rows[0], bad) == ({"n": 1}, [1])


@pytest.mark.parametrize(
    ("text", "number"), [("5.0", 5), ("-2.50e1", -25), ("1e3", 1000), ("-0.0", 0)]
)
def test_an_integer_may_be_written_as_json_has_it(text: str, number: int) -> None:
    payload = b'{"n": %b, "a": [%b, null], "d": 12345678.10, "s": "\\u00e4"}'
    schema = "n INT, a ARRAY<BIGINT>, d DECIMAL(10, 2), s STRING"

    rows, bad = decoded(schema, payload % (text.encode(), text.encode()))

    decimal = Decimal("12345678.10")
    assert bad == []
    assert rows == [{"n": number, "a": [number, None], "d": decimal, "s": "ä"}]


@pytest.mark.parametrize("text", ["2026-01-31t12:00:00z", "2026-01-31T12:00:00z"])
def test_moments_may_have_small_letters(text: str) -> None:
    rows, bad = decoded("at TIMESTAMP", json.dumps({"at": text}).encode(), b"junk")

    assert rows[0] == {"at": datetime(2026, 1, 31, 12, tzinfo=UTC)}
    assert bad == [1]


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        ("f FLOAT", b'{"f": 1e300}'),
        ("f ARRAY<FLOAT>", b'{"f": [1, 1e39]}'),
        ("f STRUCT<g: ARRAY<FLOAT>>", b'{"f": {"g": [-1e300]}}'),
        ("f DOUBLE", b'{"f": 1.7976931348623159e308}'),
    ],
)
def test_a_number_that_is_too_large_is_not_infinite(
    schema: str, payload: bytes
) -> None:
    assert decoded(schema, payload) == ([{"f": None}], [0])


documents = st.fixed_dictionaries(
    {},
    optional={
        "user": st.none() | st.text(),
        "n": st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
        "tags": st.none() | st.lists(st.none() | st.text()),
        "more": st.recursive(
            st.none() | st.booleans() | st.text(),
            lambda one: st.lists(one),
            max_leaves=5,
        ),
    },
)


@pytest.mark.slow
@given(
    st.lists(
        documents.map(lambda one: (one, json.dumps(one).encode()))
        | st.binary().map(lambda one: (None, one)),
        max_size=20,
    )
)
def test_rows_are_those_of_a_plain_decoder(
    pairs: list[tuple[dict[str, Any] | None, bytes]],
) -> None:
    payloads = [payload for _, payload in pairs]

    rows, bad = (
        decoded("user STRING, n BIGINT, tags ARRAY<STRING>", *payloads)
        if pairs
        else ([], [])
    )

    for place, (document, payload) in enumerate(pairs):
        if document is None:
            document = _object(payload)
        if document is None:
            assert place in bad
        else:
            assert place not in bad
            assert rows[place] == {
                name: document.get(name) for name in ("user", "n", "tags")
            }


def _object(payload: bytes) -> dict[str, Any] | None:
    """What random bytes say, in the rare case that they say anything."""
    try:
        found = json.loads(payload)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1.25", "1.25"),
        ('"1.25"', "1.25"),
        ("7", "7.00"),
        ("-0.5", "-0.50"),
        ("1e3", "1000.00"),
        ('"1.2500"', "1.25"),
        ("99999999.99", "99999999.99"),
        ("null", None),
    ],
)
def test_decimals_are_numbers_or_text(text: str, number: str | None) -> None:
    rows, bad = decoded("d DECIMAL(10, 2)", b'{"d": %b}' % text.encode())

    assert bad == []
    assert rows == [{"d": None if number is None else Decimal(number)}]


@pytest.mark.parametrize(
    "text", ["1.255", "100000000", '"999999999.9"', '"x"', '""', "true", "[1]", "1e20"]
)
def test_a_decimal_that_does_not_fit_stands_alone(text: str) -> None:
    good = b'{"d": 99999999.99}'

    rows, bad = decoded("d DECIMAL(10, 2)", good, b'{"d": %b}' % text.encode(), good)

    assert bad == [1]
    assert [row["d"] for row in rows] == [Decimal("99999999.99"), None, rows[0]["d"]]


def test_decimals_keep_all_their_digits() -> None:
    digits = "12345678901234567890123456789012345.678"

    rows, _ = decoded("d DECIMAL(38, 3)", b'{"d": %b}' % digits.encode())

    assert rows == [{"d": Decimal(digits)}]
