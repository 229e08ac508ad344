"""paho-mqtt, aiomqtt and gmqtt find what MQTT promises them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.interop.brokers import Broker
from tests.interop.peers import Message, Paho, Peer

pytestmark = pytest.mark.interop

Peers = Callable[..., Peer]


@pytest.mark.parametrize("granted", [0, 1, 2])
@pytest.mark.parametrize("sent", [0, 1, 2])
def test_a_message_comes_with_the_lower_of_both_qos(
    broker: Broker,
    peers: Peers,
    library: type[Peer],
    version: int,
    topic: str,
    sent: int,
    granted: int,
) -> None:
    peer = peers(library, broker.port, version=version)
    peer.connect()
    answer = peer.subscribe(topic, granted)

    peer.publish(topic, b"x" * 300, sent)
    peer.publish(topic, b"fence", sent)

    qos = min(sent, granted)
    assert answer == granted
    assert peer.receive() == Message(topic=topic, payload=b"x" * 300, qos=qos)
    assert peer.receive() == Message(topic=topic, payload=b"fence", qos=qos)


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_many_messages_come_once_and_in_order(
    broker: Broker,
    peers: Peers,
    library: type[Peer],
    version: int,
    topic: str,
    qos: int,
) -> None:
    reader = peers(library, broker.port, version=version)
    reader.connect()
    reader.subscribe(f"{topic}/+", qos)
    writer = peers(library, broker.port, version=version)
    writer.connect()

    for number in range(101):
        writer.publish(f"{topic}/a", b"%d" % number, qos)

    # The last one shows that none before it came twice.
    got = [message.payload for message in reader.receive_all(101)]
    assert got == [b"%d" % number for number in range(101)]


def test_nothing_comes_after_unsubscribing(
    broker: Broker, peers: Peers, library: type[Peer], version: int, topic: str
) -> None:
    peer = peers(library, broker.port, version=version)
    peer.connect()
    peer.subscribe(f"{topic}/#", 1)
    peer.subscribe(f"{topic}/b", 1)
    peer.unsubscribe(f"{topic}/#")

    peer.publish(f"{topic}/a", b"not for me", 1)
    peer.publish(f"{topic}/b", b"for me", 1)

    assert peer.receive().payload == b"for me"
    assert peer.is_quiet()


def test_a_retained_message_greets_who_subscribes_later(
    broker: Broker, peers: Peers, library: type[Peer], version: int, topic: str
) -> None:
    writer = peers(library, broker.port, version=version)
    writer.connect()
    writer.publish(f"{topic}/a", b"old", 1, retain=True)
    writer.publish(f"{topic}/a", b"new", 1, retain=True)
    writer.publish(f"{topic}/b", b"gone", 1, retain=True)
    writer.publish(f"{topic}/b", b"", 1, retain=True)
    reader = peers(library, broker.port, version=version)
    reader.connect()

    reader.subscribe(f"{topic}/#", 1)

    expected = Message(topic=f"{topic}/a", payload=b"new", qos=1, retain=True)
    assert reader.receive() == expected
    assert reader.is_quiet()


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_will_is_published_when_a_client_is_cut_off(
    broker: Broker,
    peers: Peers,
    library: type[Peer],
    version: int,
    topic: str,
    qos: int,
) -> None:
    reader = peers(Paho, broker.port, version=version)
    reader.connect()
    reader.subscribe(topic, 2)
    will = Message(topic=topic, payload=b"I am gone", qos=qos)
    peer = peers(library, broker.port, version=version, will=will)
    peer.connect()

    peer.drop()

    assert reader.receive() == will


def test_a_will_is_not_published_after_a_goodbye(
    broker: Broker, peers: Peers, library: type[Peer], version: int, topic: str
) -> None:
    reader = peers(Paho, broker.port, version=version)
    reader.connect()
    reader.subscribe(topic, 2)
    will = Message(topic=topic, payload=b"I am gone", qos=1)
    peer = peers(library, broker.port, version=version, will=will)
    peer.connect()

    peer.disconnect()

    assert reader.is_quiet()


def test_a_retained_will_is_there_for_later(
    broker: Broker, peers: Peers, library: type[Peer], version: int, topic: str
) -> None:
    first = peers(Paho, broker.port, version=version)
    first.connect()
    first.subscribe(topic, 1)
    will = Message(topic=topic, payload=b"offline", qos=1, retain=True)
    peer = peers(library, broker.port, version=version, will=will)
    peer.connect()
    peer.drop()
    first.receive()

    later = peers(Paho, broker.port, version=version)
    later.connect()
    later.subscribe(topic, 1)

    assert later.receive() == will


def test_a_delayed_will_waits_and_is_forgotten_if_the_client_returns(
    broker: Broker, peers: Peers, library: type[Peer], topic: str
) -> None:
    reader = peers(Paho, broker.port)
    reader.connect()
    reader.subscribe(f"{topic}/#", 1)
    soon = Message(topic=f"{topic}/soon", payload=b"1", qos=1)
    late = Message(topic=f"{topic}/late", payload=b"2", qos=1)
    gone = peers(
        library,
        broker.port,
        client_id=f"{topic}-gone",
        clean=False,
        will=soon,
        will_delay_s=1,
    )
    back = peers(
        library,
        broker.port,
        client_id=f"{topic}-back",
        clean=False,
        will=late,
        will_delay_s=2,
    )
    gone.connect()
    back.connect()

    back.drop()
    gone.drop()
    assert back.connect()

    assert reader.receive() == soon
    assert reader.is_quiet()
    back.disconnect()


@pytest.mark.parametrize("qos", [1, 2])
def test_a_session_keeps_what_comes_while_the_client_is_away(
    broker: Broker,
    peers: Peers,
    library: type[Peer],
    version: int,
    topic: str,
    qos: int,
) -> None:
    writer = peers(Paho, broker.port, version=version)
    writer.connect()
    reader = peers(
        library, broker.port, version=version, client_id=topic[-20:], clean=False
    )
    assert not reader.connect()
    reader.subscribe(topic, 2)
    reader.disconnect()
    for number in range(20):
        writer.publish(topic, b"%d" % number, qos)

    assert reader.connect()

    got = [(message.payload, message.qos) for message in reader.receive_all(20)]
    assert got == [(b"%d" % number, qos) for number in range(20)]
    assert reader.is_quiet()
    reader.disconnect()


def test_a_clean_start_forgets_the_session(
    broker: Broker, peers: Peers, library: type[Peer], version: int, topic: str
) -> None:
    name = topic[-20:]
    kept = peers(library, broker.port, version=version, client_id=name, clean=False)
    kept.connect()
    kept.subscribe(topic, 1)
    kept.disconnect()

    clean = peers(library, broker.port, version=version, client_id=name)
    assert not clean.connect()
    clean.publish(topic, b"x", 1)

    assert clean.is_quiet()
    clean.disconnect()
    again = peers(library, broker.port, version=version, client_id=name, clean=False)
    assert not again.connect()


def test_the_members_of_a_shared_subscription_divide_the_messages(
    broker: Broker, peers: Peers, library: type[Peer], topic: str
) -> None:
    members = [peers(library, broker.port) for _ in range(3)]
    for member in members:
        member.connect()
        member.subscribe(f"$share/group/{topic}", 1)
    alone = peers(library, broker.port)
    alone.connect()
    alone.subscribe(topic, 1)
    writer = peers(library, broker.port)
    writer.connect()

    for number in range(60):
        writer.publish(topic, b"%d" % number, 1)

    assert len(alone.receive_all(60)) == 60
    shares = [member.receive_rest() for member in members]
    everything = sorted(int(message.payload) for share in shares for message in share)
    assert everything == list(range(60))
    assert all(shares), "somebody got nothing"


def test_user_properties_travel_with_a_message(
    broker: Broker, peers: Peers, library: type[Peer], topic: str
) -> None:
    pairs = (("trace", "1"), ("trace", "2"), ("füße", "naß"))
    peer = peers(library, broker.port)
    peer.connect()
    peer.subscribe(topic, 1)

    peer.publish(topic, b"x", 1, user_properties=pairs)

    assert peer.receive().user_properties == pairs


def test_the_second_client_of_a_name_takes_over(
    broker: Broker, peers: Peers, library: type[Peer], version: int, topic: str
) -> None:
    name = topic[-20:]
    first = peers(library, broker.port, version=version, client_id=name, clean=False)
    first.connect()
    first.subscribe(topic, 1)

    second = peers(Paho, broker.port, version=version, client_id=name, clean=False)

    assert second.connect()
    second.publish(topic, b"x", 1)
    assert second.receive().payload == b"x"
    assert first.is_quiet()
    second.disconnect()
