from __future__ import annotations

import pytest

from penstock.wire.mqtt import PacketKind, Reason
from penstock.wire.mqtt.connection import (
    TABLE,
    ConnectionState,
    Side,
    first_bytes,
    refusal,
)


def kinds(side: Side, state: ConnectionState, version: int) -> set[PacketKind]:
    return {kind for kind in first_bytes(side, state, version) if kind is not None}


@pytest.mark.parametrize("version", [0, 3, 4, 5])
def test_a_client_begins_with_connect(version: int) -> None:
    assert kinds(Side.CLIENT, ConnectionState.NEW, version) == {PacketKind.CONNECT}


@pytest.mark.parametrize("version", [3, 4, 5])
def test_an_open_client_sends_all_that_clients_may_and_no_second_connect(
    version: int,
) -> None:
    from_servers = {
        PacketKind.CONNACK,
        PacketKind.SUBACK,
        PacketKind.UNSUBACK,
        PacketKind.PINGRESP,
    }
    expected = {*PacketKind} - from_servers - {PacketKind.CONNECT}
    if version < 5:
        expected.remove(PacketKind.AUTH)

    assert kinds(Side.CLIENT, ConnectionState.OPEN, version) == expected


def test_only_servers_of_version_5_disconnect() -> None:
    assert PacketKind.DISCONNECT in kinds(Side.SERVER, ConnectionState.OPEN, 5)
    assert PacketKind.DISCONNECT not in kinds(Side.SERVER, ConnectionState.OPEN, 4)
    assert PacketKind.DISCONNECT in kinds(Side.CLIENT, ConnectionState.OPEN, 4)


@pytest.mark.parametrize("side", Side)
def test_nothing_comes_when_it_is_over(side: Side) -> None:
    assert (
        TABLE[side][ConnectionState.OPEN][PacketKind.DISCONNECT] is ConnectionState.OVER
    )
    assert kinds(side, ConnectionState.OVER, 5) == set()


def test_a_first_byte_has_the_flags_of_its_kind() -> None:
    table = first_bytes(Side.CLIENT, ConnectionState.OPEN, 4)

    assert table[0x62] is PacketKind.PUBREL
    assert table[0x60] is None
    assert table[0x36] is None
    assert len(table) == 256


@pytest.mark.parametrize(
    ("first", "side", "state", "version", "reason", "text"),
    [
        (0x0F, Side.CLIENT, ConnectionState.OPEN, 4, Reason.MALFORMED_PACKET, "type 0"),
        (
            0x30,
            Side.CLIENT,
            ConnectionState.NEW,
            0,
            Reason.PROTOCOL_ERROR,
            "before CONNECT",
        ),
        (
            0x30,
            Side.SERVER,
            ConnectionState.NEW,
            4,
            Reason.PROTOCOL_ERROR,
            "before CONNACK",
        ),
        (
            0x10,
            Side.CLIENT,
            ConnectionState.OPEN,
            4,
            Reason.PROTOCOL_ERROR,
            "client sends now",
        ),
        (
            0x82,
            Side.SERVER,
            ConnectionState.OPEN,
            4,
            Reason.PROTOCOL_ERROR,
            "server sends now",
        ),
        (
            0xC0,
            Side.CLIENT,
            ConnectionState.OVER,
            4,
            Reason.PROTOCOL_ERROR,
            "behind DISCONNECT",
        ),
        (
            0xF0,
            Side.CLIENT,
            ConnectionState.OPEN,
            4,
            Reason.PROTOCOL_ERROR,
            "AUTH is nothing",
        ),
        (
            0x11,
            Side.CLIENT,
            ConnectionState.NEW,
            0,
            Reason.MALFORMED_PACKET,
            "flags 0x1",
        ),
    ],
)
def test_what_is_not_in_the_table_is_explained(
    first: int,
    side: Side,
    state: ConnectionState,
    version: int,
    reason: Reason,
    text: str,
) -> None:
    error = refusal(first, side, state, version)

    assert error.reason is reason
    assert text in error.text
