"""What a client was promised is there after the broker was killed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.brokers import REFERENCE, Broker
from tests.interop.peers import Message, Paho, Peer

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(REFERENCE), reason="Mosquitto writes once in a while"),
]

Peers = Callable[..., Peer]


@pytest.mark.parametrize(("version", "qos"), [(311, 1), (311, 2), (5, 2)])
def test_a_session_survives_with_what_waits_for_it(
    own_broker: Broker, peers: Peers, library: type[Peer], version: int, qos: int
) -> None:
    reader = peers(
        library, own_broker.port, version=version, client_id="reader", clean=False
    )
    reader.connect()
    reader.subscribe("a/#", qos)
    reader.disconnect()
    writer = peers(Paho, own_broker.port, version=version)
    writer.connect()
    for number in range(30):
        writer.publish("a/b", b"%d" % number, qos)

    own_broker.kill()
    own_broker.start()

    assert reader.connect(), "the session is gone"
    got = [(message.payload, message.qos) for message in reader.receive_all(30)]
    assert got == [(b"%d" % number, qos) for number in range(30)]
    assert reader.is_quiet()


def test_what_was_taken_before_does_not_come_again(
    own_broker: Broker, peers: Peers, library: type[Peer]
) -> None:
    reader = peers(library, own_broker.port, client_id="reader", clean=False)
    reader.connect()
    reader.subscribe("a/#", 2)
    writer = peers(Paho, own_broker.port)
    writer.connect()
    for number in range(20):
        writer.publish("a/b", b"%d" % number, 2)
    assert len(reader.receive_all(20)) == 20
    # The answer of the broker to a later packet: it has all acknowledgements by then.
    reader.subscribe("fence", 0)
    reader.disconnect()

    own_broker.kill()
    own_broker.start()

    assert reader.connect()
    assert reader.is_quiet()


def test_retained_messages_and_subscriptions_survive(
    own_broker: Broker, peers: Peers, library: type[Peer], version: int
) -> None:
    wish = {"version": version, "client_id": "keeper", "clean": False}
    keeper = peers(library, own_broker.port, **wish)
    keeper.connect()
    keeper.subscribe("kept/+", 1)
    keeper.subscribe("left", 1)
    keeper.unsubscribe("left")
    keeper.publish("state/a", b"on", 1, retain=True)
    keeper.publish("state/b", b"on", 1, retain=True)
    keeper.publish("state/b", b"", 1, retain=True)
    keeper.disconnect()

    own_broker.kill()
    own_broker.start()

    assert keeper.connect()
    keeper.publish("left", b"not mine", 1)
    keeper.publish("kept/x", b"mine", 1)
    assert keeper.receive().payload == b"mine"
    keeper.subscribe("state/#", 1)
    retained = Message(topic="state/a", payload=b"on", qos=1, retain=True)
    assert keeper.receive() == retained
    assert keeper.is_quiet()


def test_a_shared_subscription_survives(own_broker: Broker, peers: Peers) -> None:
    wish = {"client_id": "member", "clean": False}
    member = peers(Paho, own_broker.port, **wish)
    member.connect()
    member.subscribe("$share/group/a", 1)
    member.disconnect()

    own_broker.kill()
    own_broker.start()

    writer = peers(Paho, own_broker.port)
    writer.connect()
    writer.publish("a", b"x", 1)
    assert member.connect()
    assert member.receive().payload == b"x"
