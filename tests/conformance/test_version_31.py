"""MQTT 3.1, which came before the standard: protocol name MQIsdp, level 3."""

from __future__ import annotations

import pytest

from tests.conformance import packets
from tests.conformance.packets import Will
from tests.conformance.peer import Join


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_messages_go_to_and_fro(join: Join, topic: str, qos: int) -> None:
    peer = join(3)

    assert peer.subscribe(f"{topic}/+", qos=qos).reasons == [qos]
    peer.publish(f"{topic}/a", b"x", qos=qos)

    message = peer.receive()
    assert (message.topic, message.payload, message.qos) == (f"{topic}/a", b"x", qos)


def test_a_session_is_resumed(join: Join, client_id: str, topic: str) -> None:
    first = join(3, client_id, clean=False)
    first.subscribe(topic, qos=1)
    first.disconnect()
    join(5).publish(topic, b"x", qos=1)

    assert join(3, client_id, clean=False).receive().payload == b"x"


def test_a_will_reaches_clients_of_every_version(join: Join, topic: str) -> None:
    watchers = [join(version) for version in (3, 4, 5)]
    for one in watchers:
        one.subscribe(topic)

    join(3, will=Will(topic=topic)).drop()

    assert [one.receive().payload for one in watchers] == [b"gone"] * 3


@pytest.mark.parametrize(("name", "level"), [(b"MQTT", 3), (b"MQIsdp", 4)])
def test_name_and_level_belong_together(dial: Join, name: bytes, level: int) -> None:
    peer = dial(4)

    peer.send(packets.connect("me", version=level, name=name))

    assert peer.rest() in (b"", b"\x20\x02\x00\x01")
