"""What dedup ids do is tested with their owner; here is what is stored."""

from __future__ import annotations

import pytest

from penstock.broker.once import publish_once
from penstock.errors import InvalidPayload
from penstock.log import Columns
from tests.unit.desk.office import Office


def test_only_events_with_new_ids_are_stored(office: Office) -> None:
    first = publish_once(
        office.broker, "t", Columns([b"a", b"b"]), ["1", None], office.now_s
    )
    second = publish_once(
        office.broker, "t", Columns([b"a", b"c", b"c"]), ["1", "2", "2"], office.now_s
    )
    office.commit()

    assert (first, second) == ([0, 1], [0, 2, 2])
    (batch,) = office.broker.log.read("t", 0)
    assert batch.payloads() == [b"a", b"b", b"c"]


def test_nothing_is_stored_if_all_ids_are_known(office: Office) -> None:
    publish_once(office.broker, "t", Columns([b"a"]), ["1"], office.now_s)
    office.commit()

    again = publish_once(office.broker, "t", Columns([b"b"]), ["1"], office.now_s)

    assert (again, office.broker.dirty) == ([0], False)


def test_a_payload_that_does_not_fit_is_named_by_its_place(office: Office) -> None:
    publish_once(office.broker, "t", Columns([b"1"]), ["1"], office.now_s)
    office.broker.cards.register("t", {"type": "integer"}, type_="", at_ms=1, by="")

    with pytest.raises(InvalidPayload) as caught:
        publish_once(
            office.broker, "t", Columns([b"1", b"x"]), ["1", "2"], office.now_s
        )

    assert caught.value.index == 1
