from __future__ import annotations

import pytest

from penstock.wire.mqtt import ClientPacketParser, render_connect, render_disconnect
from tests.unit.wire.mqtt.examples import (
    CLIENT,
    LIMIT,
    connecting,
    golden,
    rendered_by_client,
)


@pytest.mark.parametrize("version", [3, 4, 5])
def test_packets_of_clients_are_their_golden_bytes(version: int) -> None:
    rendered = [rendered_by_client(version, packet) for packet in CLIENT[version]]

    assert rendered == golden(f"client_{version}.hex")


def test_a_connect_says_its_name_and_level() -> None:
    assert render_connect(connecting(3))[2:11] == b"\x00\x06MQIsdp\x03"
    assert render_connect(connecting(4))[2:9] == b"\x00\x04MQTT\x04"
    assert render_connect(connecting(5))[2:9] == b"\x00\x04MQTT\x05"


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("user", [None, "", "bob"])
@pytest.mark.parametrize("password", [None, b"", b"\xff"])
def test_what_is_absent_is_not_what_is_empty(
    clean: bool, user: str | None, password: bytes | None
) -> None:
    connect = connecting(5, clean_start=clean, user=user, password=password)

    assert ClientPacketParser(LIMIT).feed(render_connect(connect)) == [connect]


def test_old_clients_leave_without_a_reason() -> None:
    assert render_disconnect(4, 4).hex() == "e000"
    assert render_disconnect(5, 4).hex() == "e00104"
