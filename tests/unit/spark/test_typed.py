from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.spark.ddl import parse
from penstock.spark.typed import Decoder


def decoded(schema: str, *payloads: bytes) -> tuple[list[dict[str, Any]], list[int]]:
    """The rows, and which payloads fit none."""
    fields = parse(schema).fields
    columns, bad = Decoder(fields).decode(pa.array(payloads, pa.binary()))
    rows = pa.table(columns, [one.name for one in fields]).to_pylist()
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
