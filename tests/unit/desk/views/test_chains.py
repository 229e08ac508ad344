from __future__ import annotations

import msgspec

from penstock.desk.views.chains import ChainPage
from penstock.log import Columns
from tests.unit.desk.office import Office


def test_views_travel_as_they_are(office: Office) -> None:
    office.broker.publish("t", Columns([b"\xff"], 5, ids=["x"], keys=[b"\xfe"]))
    office.commit()
    page = office.desk.chains.show(id="x")

    packed = msgspec.msgpack.encode(page)

    assert msgspec.convert(msgspec.msgpack.decode(packed), ChainPage) == page
