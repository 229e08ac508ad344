"""What a client was promised is there after the broker was killed.

Every story has topics and clients of its own, and all of them are under way when the
broker is killed: one kill is a kill for all of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator
from functools import partial

import pytest

from tests.interop.brokers import REFERENCE, Broker
from tests.interop.conftest import LIBRARIES
from tests.interop.peers import Message, Paho, Peer

pytestmark = [
    pytest.mark.interop,
    pytest.mark.slow,
    pytest.mark.skipif(bool(REFERENCE), reason="Mosquitto writes once in a while"),
]

Peers = Callable[..., Peer]
Story = Generator[None, None, None]
"""Yields where the broker is to be killed; goes on when it is back."""


def test_what_clients_were_promised_outlives_a_kill(
    own_broker: Broker, peers: Peers
) -> None:
    def client(library: type[Peer], **topic_filter: object) -> Peer:
        return peers(library, own_broker.port, **topic_filter)

    going = [
        (f"{story.__name__}, {name}, {version}", story(client, library, version))
        for story in STORIES
        for name, library in LIBRARIES.items()
        for version in (311, 5)
    ]
    for name, story in going:
        with_note(name, partial(next, story))

    own_broker.kill()
    own_broker.start()

    for name, story in going:
        with_note(name, partial(end_of, story))


def end_of(story: Story) -> None:
    for _ in story:
        raise AssertionError("it has not come to its end")


def with_note(name: str, step: Callable[[], object]) -> None:
    """Have a failure say whose it is."""
    try:
        step()
    except BaseException as error:
        error.add_note(name)
        raise


def own() -> str:
    """A name that no other story has, for a topic or a client."""
    return uuid.uuid4().hex[:20]


def a_session_survives_with_what_waits_for_it(
    client: Peers, library: type[Peer], version: int
) -> Story:
    waiting: list[tuple[Peer, int]] = []
    for qos in (1, 2):
        name = own()
        topic_filter = {"version": version, "client_id": name, "clean": False}
        reader = client(library, **topic_filter)
        reader.connect()
        reader.subscribe(f"{name}/#", qos)
        reader.disconnect()
        writer = client(Paho, version=version)
        writer.connect()
        for number in range(30):
            writer.publish(f"{name}/b", b"%d" % number, qos)
        waiting.append((reader, qos))

    yield

    for reader, qos in waiting:
        assert reader.connect(), "the session is gone"
        got = [(message.payload, message.qos) for message in reader.receive_all(30)]
        assert got == [(b"%d" % number, qos) for number in range(30)]
    assert all(reader.is_quiet() for reader, _ in waiting)


def what_was_taken_before_does_not_come_again(
    client: Peers, library: type[Peer], version: int
) -> Story:
    name = own()
    reader = client(library, version=version, client_id=name, clean=False)
    reader.connect()
    reader.subscribe(f"{name}/#", 2)
    writer = client(Paho, version=version)
    writer.connect()
    for number in range(20):
        writer.publish(f"{name}/b", b"%d" % number, 2)
    assert len(reader.receive_all(20)) == 20
    # The answer of the broker to a later packet: it has all acknowledgements by then.
    reader.subscribe("fence", 0)
    reader.disconnect()

    yield

    assert reader.connect()
    assert reader.is_quiet()


def retained_messages_and_subscriptions_survive(
    client: Peers, library: type[Peer], version: int
) -> Story:
    name = own()
    flusher = client(library, version=version, client_id=name, clean=False)
    flusher.connect()
    flusher.subscribe(f"{name}/kept/+", 1)
    flusher.subscribe(f"{name}/left", 1)
    flusher.unsubscribe(f"{name}/left")
    flusher.publish(f"{name}/state/a", b"on", 1, retain=True)
    flusher.publish(f"{name}/state/b", b"on", 1, retain=True)
    flusher.publish(f"{name}/state/b", b"", 1, retain=True)
    flusher.disconnect()

    yield

    assert flusher.connect()
    flusher.publish(f"{name}/left", b"not mine", 1)
    flusher.publish(f"{name}/kept/x", b"mine", 1)
    assert flusher.receive().payload == b"mine"
    flusher.subscribe(f"{name}/state/#", 1)
    retained = Message(topic=f"{name}/state/a", payload=b"on", qos=1, retain=True)
    assert flusher.receive() == retained
    assert flusher.is_quiet()


def a_shared_subscription_survives(
    client: Peers, library: type[Peer], version: int
) -> Story:
    name = own()
    member = client(library, version=version, client_id=name, clean=False)
    member.connect()
    member.subscribe(f"$share/group/{name}/a", 1)
    member.disconnect()

    yield

    writer = client(Paho, version=version)
    writer.connect()
    writer.publish(f"{name}/a", b"x", 1)
    assert member.connect()
    assert member.receive().payload == b"x"


STORIES = [
    a_session_survives_with_what_waits_for_it,
    what_was_taken_before_does_not_come_again,
    retained_messages_and_subscriptions_survive,
    a_shared_subscription_survives,
]
