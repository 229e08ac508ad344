"""MQTT over WebSocket, at /mqtt on the HTTP port."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.brokers import Broker
from tests.interop.loop_peers import Aiomqtt
from tests.interop.peers import Message, Paho, Peer

pytestmark = pytest.mark.interop

Peers = Callable[..., Peer]
# gmqtt has no WebSocket.
LIBRARIES: list[type[Peer]] = [Paho, Aiomqtt]


@pytest.mark.parametrize("qos", [0, 1, 2])
@pytest.mark.parametrize("library", LIBRARIES)
def test_messages_travel_both_ways(
    broker: Broker,
    peers: Peers,
    library: type[Peer],
    version: int,
    topic: str,
    qos: int,
) -> None:
    web = peers(library, broker.web_port, version=version, path="/mqtt")
    plain = peers(Paho, broker.port, version=version)
    web.connect()
    plain.connect()
    web.subscribe(f"{topic}/plain", qos)
    plain.subscribe(f"{topic}/web", qos)

    # Longer than a frame that has its length in two bytes.
    web.publish(f"{topic}/web", b"w" * 70_000, qos)
    plain.publish(f"{topic}/plain", b"p" * 70_000, qos)

    there = Message(topic=f"{topic}/web", payload=b"w" * 70_000, qos=qos)
    back = Message(topic=f"{topic}/plain", payload=b"p" * 70_000, qos=qos)
    assert plain.receive() == there
    assert web.receive() == back


def test_a_session_is_the_same_one_over_both(
    broker: Broker, peers: Peers, version: int, topic: str
) -> None:
    topic_filter = {"version": version, "client_id": topic[-20:], "clean": False}
    web = peers(Paho, broker.web_port, path="/mqtt", **topic_filter)
    web.connect()
    web.subscribe(topic, 1)
    web.disconnect()

    plain = peers(Paho, broker.port, **topic_filter)

    assert plain.connect()
    plain.publish(topic, b"x", 1)
    assert plain.receive().payload == b"x"


def test_a_will_is_published_when_a_web_socket_is_cut_off(
    broker: Broker, peers: Peers, version: int, topic: str
) -> None:
    reader = peers(Paho, broker.port, version=version)
    reader.connect()
    reader.subscribe(topic, 1)
    will = Message(topic=topic, payload=b"gone", qos=1)
    web = peers(Paho, broker.web_port, version=version, path="/mqtt", will=will)
    web.connect()

    web.drop()

    assert reader.receive() == will
