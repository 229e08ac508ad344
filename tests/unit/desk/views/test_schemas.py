from __future__ import annotations

import msgspec

from penstock.desk.views.schemas import CheckView, MisfitRow, ProblemRow, SchemaView


def test_views_travel_and_come_back() -> None:
    found = CheckView(
        topic="t",
        version=None,
        mode="full",
        problems=[ProblemRow(path="$", reason="no")],
        misfits=[MisfitRow(index=3, path="$.a", reason="no")],
    )

    again = msgspec.convert(msgspec.to_builtins(found), CheckView)

    assert again == found


def test_a_schema_is_text_so_that_any_number_in_it_travels() -> None:
    schema = '{"maximum":1%s}' % ("0" * 40)
    view = SchemaView(
        topic="t",
        version=1,
        mode="none",
        type="",
        at_ms=0,
        by="",
        bytes=len(schema),
        schema=schema,
        versions=[],
    )

    data = msgspec.msgpack.encode(view)

    assert msgspec.msgpack.decode(data, type=SchemaView) == view
