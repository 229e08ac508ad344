from __future__ import annotations

import pytest

from penstock.wire.mqtt import (
    Acks,
    Malformed,
    PacketKind,
    Reason,
    RequestedFilter,
    bodies,
)
from penstock.wire.mqtt.bodies import KEPT_BYTES, read_topic, topic_of
from penstock.wire.mqtt.connection import Side
from penstock.wire.mqtt.primitives import PacketBody, text


def body(data: str) -> PacketBody:
    raw = bytes.fromhex(data)
    return PacketBody(raw, 0, len(raw), "TEST")


def test_a_topic_is_read_once_and_kept() -> None:
    field = text("a/kept/topic")

    assert topic_of(field) is topic_of(bytes(bytearray(field)))
    assert read_topic(field) == "a/kept/topic"


@pytest.mark.parametrize("topic", ["a#", "+", "a\0"])
def test_a_wrong_topic_is_wrong_each_time(topic: str) -> None:
    for read in (topic_of, topic_of, read_topic):
        with pytest.raises(Malformed, match="PUBLISH has topic"):
            read(text(topic))


def test_what_is_kept_is_bounded() -> None:
    most = topic_of.cache_info().maxsize

    assert most is not None
    assert most * KEPT_BYTES < 1 << 21


def test_text_of_errors_shows_a_part_of_a_long_topic() -> None:
    with pytest.raises(Malformed) as refused:
        read_topic(text("x" * 60_000 + "#"))

    assert len(refused.value.text) < 200


def test_options_of_a_filter_are_bits() -> None:
    parsed = bodies.subscribe(body("0001 00 0001612e 00016211"), 5)

    assert parsed.filters == [
        RequestedFilter(
            "a", 2, no_local=True, retain_as_published=True, retain_handling=2
        ),
        RequestedFilter("b", 1, retain_handling=1),
    ]


def test_a_disconnect_may_leave_out_what_it_does_not_say() -> None:
    assert bodies.disconnect(body(""), 5, Side.CLIENT).reason == 0
    assert bodies.disconnect(body("04"), 5, Side.CLIENT).reason == 4
    assert bodies.disconnect(body("0400"), 5, Side.CLIENT).properties == {}


def test_an_acknowledgement_may_leave_out_what_it_does_not_say() -> None:
    for data in ("0007", "000700", "00070000", "000710"):
        assert bodies.ack(body(data), PacketKind.PUBACK, 5) == Acks(
            kind=PacketKind.PUBACK, packet_ids=[7]
        )


def test_a_login_that_ends_is_told_by_servers_only() -> None:
    assert bodies.auth(body(""), 5, Side.SERVER).reason is Reason.SUCCESS
    with pytest.raises(Malformed):
        bodies.auth(body(""), 5, Side.CLIENT)
