from __future__ import annotations

import pytest

from penstock import Event
from penstock.broker.broker import Broker
from penstock.embedded.payload import Codec
from penstock.errors import UnfitPayload
from penstock.log import Columns, Log
from penstock.testing import CrashDisk
from penstock.testing.inspector import Inspector, typed
from tests.unit.testing.shop import Order


@pytest.fixture
def broker() -> Broker:
    disk = CrashDisk()
    return Broker(lambda **more: Log.open("/data", files=disk, **more))


def test_all_events_are_found_over_many_reads(broker: Broker) -> None:
    broker.create_topic("t")
    payload = bytes(400_000)
    for number in range(8):
        broker.publish("t", Columns([payload, b"%d" % number], 0))
        broker.log.sync()

    found = Inspector(broker).events("t", None)

    assert [one.offset for one in found] == list(range(16))
    assert found[-1].payload == b"7"


def test_events_that_were_cut_off_are_no_trouble(broker: Broker) -> None:
    broker.create_topic("t")
    broker.publish("t", Columns([b"1", b"2", b"3"], 0))
    broker.log.sync()
    broker.log.roll("t")
    broker.log.trim("t", 3)
    broker.publish("t", Columns([b"4"], 0))
    broker.log.sync()

    assert [one.payload for one in Inspector(broker).events("t", None)] == [b"4"]


def test_there_is_nothing_at_first(broker: Broker) -> None:
    look = Inspector(broker)

    assert (look.events("t", None), look.dead_letters(), look.errors()) == ([], [], [])


def test_letters_that_were_seen_to_are_left_out(broker: Broker) -> None:
    for number in range(3):
        broker.dead_letter(gateway="json", reason=f"no {number}", raw=b"x")
    broker.log.sync()
    broker.letters.close([1], "dropped")

    found = Inspector(broker).dead_letters()

    assert [(one.number, one.reason) for one in found] == [(0, "no 0"), (2, "no 2")]


def test_a_payload_is_of_its_type_or_refused() -> None:
    event = Event(topic="t", offset=0, id="e", timestamp_ms=0, payload=b'{"total":1}')

    assert typed(event, Codec(Order)).payload == Order(1)
    assert typed(event, None).payload == b'{"total":1}'
    with pytest.raises(UnfitPayload):
        typed(event, Codec(list[int]))
