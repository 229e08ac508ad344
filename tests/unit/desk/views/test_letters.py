from __future__ import annotations

import msgspec

from penstock.desk.views.letters import GroupPage, GroupRow


def test_a_page_travels_as_it_is() -> None:
    row = GroupRow(
        subscriber="me",
        topic="t",
        gateway="delivery",
        kind="KeyError",
        pattern="KeyError: …",
        count=2,
        first_ms=1,
        last_ms=2,
        first=0,
        example=1,
    )
    page = GroupPage(groups=[row], next=None, end=2)

    travelled = msgspec.msgpack.decode(msgspec.msgpack.encode(page))

    assert msgspec.convert(travelled, GroupPage) == page
