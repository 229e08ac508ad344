from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from penstock.wire.mqtt.packets import (
    ClientPacket,
    Packet,
    Pingreq,
    Publishes,
    ServerPacket,
)
from tests.unit.wire.mqtt.examples import CLIENT, SERVER, published

KINDS = [*dict.fromkeys([*get_args(ClientPacket), *get_args(ServerPacket)])]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_packets_do_not_change(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.frozen


def test_examples_show_every_packet() -> None:
    packets: list[Packet] = []
    for version in (3, 4, 5):
        packets += CLIENT[version]
        packets += SERVER[version]

    assert {type(packet) for packet in packets} == set(KINDS)


def test_packets_with_the_same_fields_are_equal() -> None:
    assert published("t", b"x") == published("t", b"x")
    assert published("t", b"x") != published("t", b"y")
    assert Pingreq() == Pingreq()
    assert isinstance(published("t"), Publishes)
