"""Chapters 3.8 and 3.9: SUBSCRIBE and SUBACK."""

from __future__ import annotations

import pytest

from tests.conformance import packets
from tests.conformance.expect import broken_off
from tests.conformance.packets import SUBACK, SUBSCRIBE, TopicFilter, short, text
from tests.conformance.peer import Join
from tests.conformance.statements import statement, statement311


@statement("MQTT-3.8.3-2")
@statement311("MQTT-3.8.3-3")
def test_a_subscribe_without_filters_ends_the_connection(
    join: Join, version: int
) -> None:
    peer = join(version)

    peer.send(packets.subscribe(1, [], version=version))

    broken_off(peer)


OPTIONS = {
    5: {"QoS 3": 3, "retain handling 3": 0x30, "bit 6": 0x40, "bit 7": 0x80},
    4: {"QoS 3": 3, "bit 2": 4, "bit 4": 0x10, "bit 7": 0x80},
}


@pytest.mark.parametrize("options", OPTIONS[5].values(), ids=OPTIONS[5])
@statement("MQTT-3.8.3-5")
def test_reserved_bits_of_the_options_end_the_connection(
    join: Join, topic: str, options: int
) -> None:
    peer = join()
    body = short(1) + b"\0" + text(topic) + bytes([options])

    peer.send(packets.packet(SUBSCRIBE, body, flags=2))

    broken_off(peer)


@pytest.mark.parametrize("options", OPTIONS[4].values(), ids=OPTIONS[4])
@statement311("MQTT-3.8.3-4")
def test_reserved_bits_of_the_requested_qos_end_the_connection(
    join: Join, topic: str, options: int
) -> None:
    peer = join(4)
    body = short(1) + text(topic) + bytes([options])

    peer.send(packets.packet(SUBSCRIBE, body, flags=2))

    broken_off(peer)


@pytest.mark.parametrize("qos", [0, 1, 2])
@statement("MQTT-3.8.3-3")
def test_no_local_leaves_out_what_the_client_published_itself(
    join: Join, topic: str, qos: int
) -> None:
    peer, other = join(), join()
    peer.subscribe(TopicFilter(filter=topic, qos=2, no_local=True))
    other.subscribe(topic)

    peer.publish(topic, b"mine", qos=qos)
    assert other.receive().payload == b"mine"
    other.publish(topic, b"end", qos=qos)

    assert peer.until(b"end") == []


@statement("MQTT-3.8.3-3")
def test_no_local_holds_over_a_reconnect(
    join: Join, client_id: str, topic: str
) -> None:
    keep = [(packets.SESSION_EXPIRY, 100)]
    peer, other = join(client_id=client_id, pairs=keep), join()
    peer.subscribe(TopicFilter(filter=topic, qos=1, no_local=True))
    peer.drop()
    back = join(client_id=client_id, clean=False, pairs=keep)

    back.publish(topic, b"mine", qos=1)
    other.publish(topic, b"end", qos=1)

    assert back.until(b"end") == []


@statement("MQTT-3.8.3-4")
def test_no_local_with_a_shared_subscription_ends_the_connection(
    join: Join, topic: str
) -> None:
    peer = join()
    topic_filter = TopicFilter(filter=f"$share/group/{topic}", no_local=True)

    peer.send(packets.subscribe(1, [topic_filter]))

    broken_off(peer)


@statement("MQTT-3.8.4-3", "MQTT-3.8.4-8")
@statement311("MQTT-3.8.4-3", "MQTT-3.8.4-6")
def test_a_filter_subscribed_to_again_replaces_the_subscription(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)

    for qos in (2, 0, 1):
        peer.subscribe(topic, qos=qos)
        peer.publish(topic, b"x", qos=2)
        assert peer.receive().qos == qos
    peer.publish(topic, b"end", qos=2)

    assert peer.until(b"end") == [], "there is one subscription"


@statement("MQTT-3.8.4-4")
@statement311("MQTT-3.8.4-3")
def test_nothing_is_lost_while_a_subscription_is_replaced(
    join: Join, version: int, topic: str
) -> None:
    peer, publisher = join(version), join(version)
    peer.subscribe(topic, qos=1)
    topic_filter = packets.subscribe(
        100, [TopicFilter(filter=topic, qos=1)], version=version
    )

    for at in range(100):
        data = packets.publish(
            topic, b"%d" % at, qos=1, packet_id=at + 1, version=version
        )
        publisher.send(data)
        if at % 10 == 5:
            peer.send(topic_filter)

    assert [int(peer.receive().payload) for _ in range(100)] == list(range(100))


@statement("MQTT-3.8.4-5", "MQTT-3.8.4-6", "MQTT-3.8.4-7", "MQTT-3.9.3-1")
@statement311("MQTT-3.8.4-4", "MQTT-3.8.4-5", "MQTT-3.9.3-1")
def test_several_filters_are_answered_together_and_in_order(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    levels = [0, 1, 2, 2, 0, 1]
    topic_filters = [
        TopicFilter(filter=f"{topic}/{at}", qos=level)
        for at, level in enumerate(levels)
    ]

    answer = peer.subscribe(*topic_filters)

    assert answer.reasons == levels
    for at, level in enumerate(levels):
        peer.publish(f"{topic}/{at}", qos=2)
        assert peer.receive().qos == level


@statement("MQTT-3.8.4-6", "MQTT-3.9.3-1")
@statement311("MQTT-3.8.4-5", "MQTT-3.9.3-1")
def test_a_thousand_filters_are_answered_in_one_packet(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    levels = [at % 3 for at in range(1000)]
    topic_filters = [
        TopicFilter(filter=f"{topic}/{at}/+", qos=level)
        for at, level in enumerate(levels)
    ]

    assert peer.subscribe(*topic_filters).reasons == levels
    peer.publish(f"{topic}/998/x", qos=2)
    assert peer.receive().qos == 998 % 3


@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("granted", [0, 1, 2])
@statement("MQTT-3.8.4-8")
@statement311("MQTT-3.8.4-6")
def test_a_message_has_the_lower_qos_of_publisher_and_subscription(
    join: Join, version: int, topic: str, published: int, granted: int
) -> None:
    peer = join(version)
    peer.subscribe(topic, qos=granted)

    peer.publish(topic, qos=published)

    assert peer.receive().qos == min(published, granted)


@statement("MQTT-3.9.3-2", "MQTT-4.8.2-1", "MQTT-4.8.2-2", "MQTT-4.7.1-1")
@statement("MQTT-3.9.2-1", "MQTT-3.9.2-2")
def test_a_filter_that_is_none_is_refused_in_a_packet_that_fits(join: Join) -> None:
    size = join(client_id="fits").connack.size
    pairs = [(packets.MAXIMUM_PACKET_SIZE, size)]
    peer = join(client_id="fits", pairs=pairs)

    peer.send(packets.subscribe(1, [TopicFilter(filter="$share/+/a")]))

    answer = peer.read()
    assert answer.size <= size
    if answer.kind == SUBACK:
        assert answer.reasons == [0x8F]
    else:
        assert answer.reason in (0x81, 0x82, 0x8F)
        assert peer.closed() == []


@statement("MQTT-4.13.1-1")
def test_subscription_identifier_0_ends_the_connection(join: Join, topic: str) -> None:
    peer = join()
    pairs = [(packets.SUBSCRIPTION_ID, 0)]

    peer.send(packets.subscribe(1, [TopicFilter(filter=topic)], pairs=pairs))

    broken_off(peer)


@statement311("MQTT-3.8.3-2")
def test_wildcards_are_supported(join: Join, version: int, topic: str) -> None:
    peer = join(version)

    assert peer.subscribe("#", "+/a", f"{topic}/+/#", qos=1).reasons == [1, 1, 1]
