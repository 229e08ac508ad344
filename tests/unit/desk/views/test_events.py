from __future__ import annotations

import msgspec

from penstock.desk.views.events import DeliveryRow, EventDetail, TopicEventView


def test_a_detail_travels_as_it_is() -> None:
    event = TopicEventView(
        topic="t",
        offset=1,
        id="x",
        timestamp=5,
        priority=0,
        key=None,
        headers={},
        parent=None,
        producer=None,
        payload=b"\xff",
    )
    row = DeliveryRow(
        subscriber="anna",
        temporary=False,
        state="not yet",
        tries=0,
        due_ms=None,
        errors=[],
        letter=None,
    )
    detail = EventDetail(
        event=event, deliveries=[row], more_deliveries=False, letters_cut=False
    )

    packed = msgspec.msgpack.encode(detail)

    assert msgspec.msgpack.decode(packed, type=EventDetail) == detail
