from __future__ import annotations

import msgspec
import pytest

from penstock.cdc.pgoutput import UNCHANGED, Relation, RelationColumn
from penstock.cdc.rows import Table, filled

COLUMNS = {
    "flag": (16, b"t", True),
    "small": (21, b"-7", -7),
    "big": (20, b"9223372036854775807", 9223372036854775807),
    "real": (701, b"1.5e-3", 0.0015),
    "no number": (701, b"NaN", "NaN"),
    "exact": (1700, b"12.50", 12.5),
    "json": (114, b'{"a": [1, null]}', {"a": [1, None]}),
    "jsonb": (3802, b'"x"', "x"),
    "text": (25, 'ü "quoted" \n'.encode(), 'ü "quoted" \n'),
    "time": (1184, b"2030-01-01 00:00:00+00", "2030-01-01 00:00:00+00"),
    "null": (25, None, None),
}


def table(
    key: tuple[str, ...] = (),
    document: str | None = None,
    *,
    identity: str = "f",
    keyed: str = "",
    schema: str = "public",
) -> Table:
    columns = tuple(
        RelationColumn(name, kind, identity == "f" or name == keyed)
        for name, (kind, _, _) in COLUMNS.items()
    )
    return Table(Relation(1, schema, "t", identity, columns), key, document)


ROW = tuple(value for _, value, _ in COLUMNS.values())


def test_values_have_the_types_that_json_has() -> None:
    found = msgspec.json.decode(table().document(ROW))

    assert found == {name: value for name, (_, _, value) in COLUMNS.items()}


def test_what_was_not_sent_is_not_there() -> None:
    row = (UNCHANGED, *ROW[1:])

    assert "flag" not in msgspec.json.decode(table().document(row))
    assert filled(row, ROW) == ROW
    assert filled(row, None) == row


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (("small",), "-7"),
        (("time", "small"), '["2030-01-01 00:00:00+00","-7"]'),
        ((), None),
    ],
)
def test_keys_are_text(key: tuple[str, ...], text: str | None) -> None:
    assert table(key).key(ROW) == text


def test_a_key_that_is_null_is_none() -> None:
    assert table(("null",)).key(ROW) is None


def test_an_index_that_tells_rows_apart_is_the_key() -> None:
    assert table(("small",), identity="i", keyed="big").key(ROW) == str(2**63 - 1)


def test_a_key_that_was_altered_since_is_what_the_rows_say() -> None:
    assert table(("renamed",), identity="d", keyed="small").key(ROW) == "-7"
    assert table(("renamed",), identity="f").key(ROW) is None


def test_a_schema_is_part_of_the_name_unless_it_is_public() -> None:
    assert (table().name, table(schema="sales").name) == ("t", "sales.t")


def test_a_column_may_be_the_document() -> None:
    assert bytes(table(document="json").document(ROW)) == b'{"a": [1, null]}'
    assert bytes(table(document="null").document(ROW)) == b"null"
    assert bytes(table(document="no number").document(ROW)) == b'"NaN"'
    unsent = tuple(UNCHANGED for _ in ROW)
    assert bytes(table(document="json").document(unsent)) == b"null"
    assert bytes(table().document(None)) == b"null"


def test_a_table_without_that_column_has_documents_of_all_columns() -> None:
    assert b'"flag":true' in bytes(table(document="nothing").document(ROW))
