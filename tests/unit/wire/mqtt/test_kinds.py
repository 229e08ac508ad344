from __future__ import annotations

import pytest

from penstock.wire.mqtt.kinds import PacketKind, first_byte, flags


def test_numbers_are_those_of_the_specification() -> None:
    assert [kind.name for kind in sorted(PacketKind)] == [
        *("CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP"),
        *("SUBSCRIBE", "SUBACK", "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP"),
        *("DISCONNECT", "AUTH"),
    ]
    assert [*map(int, sorted(PacketKind))] == [*range(1, 16)]


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_publish_has_one_of_three_qos_and_is_a_duplicate_only_above_0(
    version: int,
) -> None:
    for flag in range(16):
        qos, dup = flag >> 1 & 3, flag >> 3
        good = qos < 3 and not (dup and not qos)
        assert (flag in flags(PacketKind.PUBLISH, version)) is good


def test_others_have_fixed_flags() -> None:
    marked = {kind for kind in PacketKind if flags(kind, 5) == (2,)}

    assert marked == {PacketKind.PUBREL, PacketKind.SUBSCRIBE, PacketKind.UNSUBSCRIBE}
    assert {
        flags(k, 5) for k in PacketKind if k not in (PacketKind.PUBLISH, *marked)
    } == {(0,)}
    assert flags(PacketKind.PUBREL, 3) == (2, 10)


def test_first_bytes_hold_kind_and_flags() -> None:
    assert first_byte(PacketKind.PUBACK) == 0x40
    assert first_byte(PacketKind.PUBREL) == 0x62
    assert first_byte(PacketKind.SUBSCRIBE) == 0x82
