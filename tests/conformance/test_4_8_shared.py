"""Chapters 4.8 and 4.9: shared subscriptions and flow control."""

from __future__ import annotations

import pytest

from tests.conformance import packets
from tests.conformance.packets import (
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    RECEIVE_MAXIMUM,
    SESSION_EXPIRY,
    TopicFilter,
)
from tests.conformance.peer import Join, Peer
from tests.conformance.statements import statement
from tests.conformance.test_4_7_topics import refuse_filter

KEEP = [(SESSION_EXPIRY, 100)]


@pytest.mark.parametrize(
    "filter",
    ["$share//a", "$share/a+/b", "$share/#/b", "$share/g", "$share/g/", "$share/"],
)
@statement("MQTT-4.8.2-1", "MQTT-4.8.2-2")
def test_a_shared_filter_without_a_name_or_a_filter_is_refused(
    join: Join, filter: str
) -> None:
    refuse_filter(join, 5, filter)


@pytest.mark.parametrize("qos", [0, 1, 2])
@statement("MQTT-4.8.2-1")
def test_each_message_goes_to_one_of_a_group(join: Join, topic: str, qos: int) -> None:
    first, second, alone = join(), join(), join()
    for peer in (first, second):
        peer.subscribe(f"$share/group/{topic}", qos=qos)
    alone.subscribe(topic, qos=qos)

    for at in range(20):
        alone.publish(topic, b"%d" % at, qos=qos)

    assert [int(alone.receive().payload) for _ in range(20)] == list(range(20))
    got = sorted(int(one.payload) for one in collect([first, second], 20))
    assert got == list(range(20))


@statement("MQTT-4.8.2-1")
def test_every_group_gets_each_message(join: Join, topic: str) -> None:
    peer, other, publisher = join(), join(), join()
    peer.subscribe(f"$share/one/{topic}/+", qos=1)
    other.subscribe(f"$share/two/{topic}/#", qos=1)

    publisher.publish(f"{topic}/a", b"x", qos=1)

    assert peer.receive().payload == other.receive().payload == b"x"


@statement("MQTT-4.8.2-3")
def test_members_of_a_group_get_their_own_qos(join: Join, topic: str) -> None:
    low, high = join(), join()
    low.subscribe(f"$share/group/{topic}", qos=0)
    high.subscribe(f"$share/group/{topic}", qos=1)
    publisher = join()

    for at in range(20):
        publisher.publish(topic, b"%d" % at, qos=2)

    got = collect([low, high], 20)
    assert len(got) == 20
    assert all(one.qos == 0 for one in low.seen)
    assert all(one.qos == 1 for one in high.seen)


@statement("MQTT-4.8.2-4")
def test_a_message_of_qos_2_stays_with_the_member_that_got_it(
    join: Join, client_id: str, topic: str
) -> None:
    member = join(client_id=client_id, pairs=KEEP)
    member.subscribe(f"$share/group/{topic}", qos=2)
    publisher = join()
    publisher.publish(topic, b"x", qos=2)
    message = member.take(PUBLISH)
    member.ack(PUBREC, message.packet_id)
    assert member.take(PUBREL).packet_id == message.packet_id
    other = join()
    other.subscribe(f"$share/group/{topic}", qos=2)

    member.drop()

    back = join(client_id=client_id, clean=False, pairs=KEEP)
    assert back.take(PUBREL).packet_id == message.packet_id
    back.ack(PUBCOMP, message.packet_id)
    back.unsubscribe(f"$share/group/{topic}")
    publisher.publish(topic, b"end", qos=2)
    assert other.until(b"end") == []


@statement("MQTT-4.8.2-5")
def test_a_message_of_qos_2_is_given_to_nobody_else_if_its_member_ends(
    join: Join, client_id: str, topic: str
) -> None:
    member, other = join(client_id=client_id, pairs=KEEP), join()
    member.subscribe(f"$share/group/{topic}", qos=2)
    publisher = join()
    publisher.publish(topic, b"x", qos=2)
    assert member.take(PUBLISH).payload == b"x"
    other.subscribe(f"$share/group/{topic}", qos=2)
    member.drop()

    join(client_id=client_id, clean=True)

    publisher.publish(topic, b"end", qos=2)
    assert other.until(b"end") == []


@statement("MQTT-4.8.2-6")
def test_a_message_a_member_refused_goes_to_nobody_else(join: Join, topic: str) -> None:
    member = join()
    member.subscribe(f"$share/group/{topic}", qos=2)
    publisher = join()
    publisher.publish(topic, b"1", qos=1)
    publisher.publish(topic, b"2", qos=2)
    first, second = member.take(PUBLISH), member.take(PUBLISH)
    other = join()
    other.subscribe(f"$share/group/{topic}", qos=2)

    member.ack(PUBACK, first.packet_id, 0x80)
    member.ack(PUBREC, second.packet_id, 0x80)

    member.unsubscribe(f"$share/group/{topic}")
    publisher.publish(topic, b"end", qos=2)
    assert other.until(b"end") == []


def test_retained_messages_are_not_sent_to_shared_subscriptions(
    join: Join, topic: str
) -> None:
    peer = join()
    peer.publish(topic, b"kept", qos=1, retain=True)

    peer.subscribe(f"$share/group/{topic}", qos=1)

    peer.publish(topic, b"end", qos=1)
    assert peer.until(b"end") == []


@pytest.mark.parametrize("qos", [1, 2])
@pytest.mark.parametrize("maximum", [1, 3])
@statement("MQTT-3.3.4-9", "MQTT-4.9.0-1", "MQTT-4.9.0-2")
def test_no_more_messages_are_under_way_than_the_client_takes(
    join: Join, topic: str, qos: int, maximum: int
) -> None:
    peer, publisher = join(pairs=[(RECEIVE_MAXIMUM, maximum)]), join()
    peer.subscribe(topic, qos=qos)
    for at in range(8):
        publisher.publish(topic, b"%d" % at, qos=qos)
    held: list[int] = []
    got: list[int] = []

    while len(got) < 8:
        message = peer.take(PUBLISH)
        got.append(int(message.payload))
        held.append(message.packet_id)
        assert len(held) <= maximum
        if len(held) == maximum:
            peer.ping()
            assert [one for one in peer.inbox if one.kind == PUBLISH] == []
            end(peer, held.pop(0), qos)

    assert got == list(range(8))


@statement("MQTT-3.3.4-10", "MQTT-4.9.0-3")
def test_other_packets_do_not_wait_for_a_full_window(join: Join, topic: str) -> None:
    peer, publisher = join(pairs=[(RECEIVE_MAXIMUM, 1)]), join()
    peer.subscribe(f"{topic}/+", qos=1)
    for at in range(3):
        publisher.publish(f"{topic}/a", b"%d" % at, qos=1)
    held = peer.take(PUBLISH)

    peer.ping()
    assert peer.subscribe(f"{topic}/b/c", qos=2).reasons == [2]
    peer.publish(f"{topic}/none/such", qos=2)
    peer.publish(f"{topic}/b", b"light")
    peer.unsubscribe(f"{topic}/b/c")

    assert all(one.qos == 0 for one in peer.inbox if one.kind == PUBLISH)
    peer.ack(PUBACK, held.packet_id)
    assert peer.receive().payload in (b"1", b"light")


@statement("MQTT-4.9.0-2")
def test_the_window_of_a_session_counts_after_a_reconnect(
    join: Join, client_id: str, topic: str
) -> None:
    peer, publisher = join(client_id=client_id, pairs=KEEP), join()
    peer.subscribe(topic, qos=1)
    for at in range(4):
        publisher.publish(topic, b"%d" % at, qos=1)
    for _ in range(4):
        peer.take(PUBLISH)
    peer.drop()

    pairs = [*KEEP, (RECEIVE_MAXIMUM, 2)]
    back = join(client_id=client_id, clean=False, pairs=pairs)

    first = [back.take(PUBLISH), back.take(PUBLISH)]
    back.ping()
    assert back.inbox == []
    for one in first:
        back.ack(PUBACK, one.packet_id)
    got = [*first, back.receive(), back.receive()]
    assert [int(one.payload) for one in got] == list(range(4))


def collect(peers: list[Peer], count: int) -> list[packets.Packet]:
    """Messages of several clients, however they are spread."""
    got: list[packets.Packet] = []
    for peer in peers:
        peer.seen = []
        topic_filter = TopicFilter(filter=f"mine/{peer.client_id}", qos=0)
        peer.subscribe(topic_filter)
        peer.publish(topic_filter.filter, b"end")
        peer.seen = peer.until(b"end")
        got += peer.seen
    while len(got) < count:
        for peer in peers:
            peer.ping()
            while any(one.kind == PUBLISH for one in peer.inbox):
                peer.seen.append(peer.receive())
                got.append(peer.seen[-1])
    return got


def end(peer: Peer, packet_id: int, qos: int) -> None:
    """Settle a message, whatever its QoS."""
    peer.ack(PUBACK if qos == 1 else PUBREC, packet_id)
    if qos == 2:
        assert peer.take(PUBREL).packet_id == packet_id
        peer.ack(PUBCOMP, packet_id)
