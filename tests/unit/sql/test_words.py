from __future__ import annotations

import pytest

from penstock.sql.engine import spoken, with_column


@pytest.mark.parametrize(
    ("query", "quoted"),
    [
        ("SELECT offset FROM t", 'SELECT "offset" FROM t'),
        ("SELECT Offset, x FROM t", 'SELECT "Offset", x FROM t'),
        ("FROM t WHERE offset>=5", 'FROM t WHERE "offset">=5'),
        ("FROM t ORDER BY offset LIMIT 1", 'FROM t ORDER BY "offset" LIMIT 1'),
        ("FROM t ORDER BY offset", 'FROM t ORDER BY "offset"'),
        ("SELECT max(offset)", 'SELECT max("offset")'),
    ],
)
def test_the_column_gets_its_quotes(query: str, quoted: str) -> None:
    assert with_column(query) == quoted


@pytest.mark.parametrize(
    "query",
    [
        "FROM t LIMIT 10 OFFSET 20",
        "FROM t OFFSET (1 + 2)",
        "FROM t OFFSET ?",
        "FROM t LIMIT 1 offset\n  5",
        'SELECT "offset", t.offset, offsets, my_offset FROM t',
        "SELECT 'offset', 'it''s an offset' FROM t",
        "FROM t -- by offset\n",
        "FROM t /* by\noffset */",
        "FROM `offset`",
    ],
)
def test_anything_else_stays_as_it_is(query: str) -> None:
    assert with_column(query) == query


def test_texts_and_comments_say_nothing() -> None:
    query = """SELECT 'it''s', "a 'b'" /* c\n */ FROM t -- d\nWHERE $$ e $$"""

    assert spoken(query).split() == ["SELECT", ",", '"a', "'b'\"", "FROM", "t", "WHERE"]
