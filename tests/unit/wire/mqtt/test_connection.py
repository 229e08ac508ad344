from __future__ import annotations

import pytest

from penstock.wire.mqtt import Kind, Reason
from penstock.wire.mqtt.connection import TABLE, Side, State, first_bytes, refusal


def kinds(side: Side, state: State, version: int) -> set[Kind]:
    return {kind for kind in first_bytes(side, state, version) if kind is not None}


@pytest.mark.parametrize("version", [0, 3, 4, 5])
def test_a_client_begins_with_connect(version: int) -> None:
    assert kinds(Side.CLIENT, State.NEW, version) == {Kind.CONNECT}


@pytest.mark.parametrize("version", [3, 4, 5])
def test_an_open_client_sends_all_that_clients_may_and_no_second_connect(
    version: int,
) -> None:
    from_servers = {Kind.CONNACK, Kind.SUBACK, Kind.UNSUBACK, Kind.PINGRESP}
    expected = {*Kind} - from_servers - {Kind.CONNECT}
    if version < 5:
        expected.remove(Kind.AUTH)

    assert kinds(Side.CLIENT, State.OPEN, version) == expected


def test_only_servers_of_version_5_disconnect() -> None:
    assert Kind.DISCONNECT in kinds(Side.SERVER, State.OPEN, 5)
    assert Kind.DISCONNECT not in kinds(Side.SERVER, State.OPEN, 4)
    assert Kind.DISCONNECT in kinds(Side.CLIENT, State.OPEN, 4)


@pytest.mark.parametrize("side", Side)
def test_nothing_comes_when_it_is_over(side: Side) -> None:
    assert TABLE[side][State.OPEN][Kind.DISCONNECT] is State.OVER
    assert kinds(side, State.OVER, 5) == set()


def test_a_first_byte_has_the_flags_of_its_kind() -> None:
    table = first_bytes(Side.CLIENT, State.OPEN, 4)

    assert table[0x62] is Kind.PUBREL
    assert table[0x60] is None
    assert table[0x36] is None
    assert len(table) == 256


@pytest.mark.parametrize(
    ("first", "side", "state", "version", "reason", "text"),
    [
        (0x0F, Side.CLIENT, State.OPEN, 4, Reason.MALFORMED_PACKET, "type 0"),
        (0x30, Side.CLIENT, State.NEW, 0, Reason.PROTOCOL_ERROR, "before CONNECT"),
        (0x30, Side.SERVER, State.NEW, 4, Reason.PROTOCOL_ERROR, "before CONNACK"),
        (0x10, Side.CLIENT, State.OPEN, 4, Reason.PROTOCOL_ERROR, "client sends now"),
        (0x82, Side.SERVER, State.OPEN, 4, Reason.PROTOCOL_ERROR, "server sends now"),
        (0xC0, Side.CLIENT, State.OVER, 4, Reason.PROTOCOL_ERROR, "behind DISCONNECT"),
        (0xF0, Side.CLIENT, State.OPEN, 4, Reason.PROTOCOL_ERROR, "AUTH is nothing"),
        (0x11, Side.CLIENT, State.NEW, 0, Reason.MALFORMED_PACKET, "flags 0x1"),
    ],
)
def test_what_is_not_in_the_table_is_explained(
    first: int, side: Side, state: State, version: int, reason: Reason, text: str
) -> None:
    error = refusal(first, side, state, version)

    assert error.reason is reason
    assert text in error.text
