"""``$SYS`` topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import __version__
from penstock.gateway.mqtt.system import PacketCounts, System
from penstock.gateway.options import MqttOptions
from tests.unit.gateway.mqtt.scene import Client, Scene


@pytest.fixture
def telling(tmp_path: Path) -> Scene:
    """A scene with a round every ten seconds."""
    return Scene(tmp_path, mqtt=MqttOptions(sys_interval_s=10.0))


def told(client: Client) -> dict[str, str]:
    return {one.topic: one.payload.decode() for one in client.messages()}


def test_who_subscribes_is_told_how_things_stand(scene: Scene) -> None:
    scene.client("away", clean=False, version=4).drop()
    writer = scene.client("writer")
    writer.publish("t", b"a", b"b", retain=True)
    client = scene.client()
    client.packets()

    client.subscribe("$SYS/#")

    found = told(client)
    assert found.pop("$SYS/broker/uptime").endswith(" seconds")
    assert int(found.pop("$SYS/broker/messages/sent")) >= 0
    assert found == {
        "$SYS/broker/version": f"Penstock {__version__}",
        "$SYS/broker/clients/connected": "2",
        "$SYS/broker/clients/total": "3",
        "$SYS/broker/clients/disconnected": "1",
        "$SYS/broker/messages/received": "2",
        "$SYS/broker/retained messages/count": "1",
        "$SYS/broker/subscriptions/count": "1",
        "$SYS/broker/topics/count": "2",
        "$SYS/broker/dead letters/count": "0",
    }


def test_what_is_shown_at_first_is_retained_and_rounds_are_not(telling: Scene) -> None:
    client = telling.client()
    client.subscribe("$SYS/broker/version")
    (shown,) = client.messages()
    telling.advance(11.0)
    (round_,) = client.messages()

    assert (shown.retain, round_.retain) == (True, False)
    assert (shown.qos, round_.qos) == (0, 0)
    telling.close()


def test_a_round_comes_when_it_is_due(telling: Scene) -> None:
    client = telling.client()
    client.subscribe("$SYS/broker/uptime")
    client.packets()

    telling.advance(9.0)
    assert told(client) == {}
    telling.advance(2.0)
    assert told(client) == {"$SYS/broker/uptime": "11 seconds"}
    telling.advance(9.0)
    assert told(client) == {}
    telling.close()


def test_nobody_is_told_twice_or_without_a_wish(telling: Scene) -> None:
    client, other = telling.client("ann"), telling.client("bob")
    client.subscribe("$SYS/broker/version", "$SYS/broker/+", "$SYS/#")
    other.subscribe("#", "+/broker/version")
    client.packets()
    other.packets()

    telling.advance(11.0)

    topics = [one.topic for one in client.messages()]
    assert len(topics) == len(set(topics)) == 11
    assert other.messages() == []
    telling.close()


def test_who_unsubscribes_or_leaves_is_not_told(telling: Scene) -> None:
    client, other = telling.client("ann"), telling.client("bob")
    for one in (client, other):
        one.subscribe("$SYS/#")
        one.packets()

    client.unsubscribe("$SYS/#")
    client.packets()
    other.drop()
    telling.advance(11.0)

    assert client.messages() == []
    assert len(telling.hub.system.listeners) == 1
    telling.close()


def test_a_session_that_comes_back_is_told_again(telling: Scene) -> None:
    client = telling.client(version=4, clean=False)
    client.subscribe("$SYS/broker/version")
    client.drop()

    client = telling.client(version=4, clean=False)
    client.packets()
    telling.advance(11.0)

    assert list(told(client)) == ["$SYS/broker/version"]
    telling.close()


def test_without_an_interval_there_are_no_rounds(scene: Scene) -> None:
    client = scene.client()
    client.subscribe("$SYS/broker/version")
    client.packets()

    scene.advance(1000.0)

    assert told(client) == {}


def test_nothing_is_published_below_the_root(scene: Scene) -> None:
    client = scene.client()
    client.packets()

    client.publish("$SYS/broker/version", b"forged", qos=1, ids=[1])

    ((_, _, reason),) = client.acks()
    assert reason >= 0x80


def test_values_are_found_by_name_and_by_filter(scene: Scene) -> None:
    system = System(scene.broker, MqttOptions())

    assert dict(system.now(["$SYS/broker/version"])) == {
        "$SYS/broker/version": f"Penstock {__version__}".encode()
    }
    assert list(system.now(["$SYS/+/nothing"])) == []
    assert (PacketCounts().messages_in, PacketCounts().messages_out) == (0, 0)
