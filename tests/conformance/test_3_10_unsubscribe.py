"""Chapters 3.10 to 3.12: UNSUBSCRIBE, UNSUBACK, PINGREQ."""

from __future__ import annotations

import pytest

from tests.conformance import packets
from tests.conformance.expect import broken_off
from tests.conformance.packets import PINGRESP, PUBACK, PUBLISH, PUBREC, PUBREL
from tests.conformance.peer import Join
from tests.conformance.statements import statement, statement311


@statement("MQTT-3.10.3-2")
@statement311("MQTT-3.10.3-2")
def test_an_unsubscribe_without_filters_ends_the_connection(
    join: Join, version: int
) -> None:
    peer = join(version)

    peer.send(packets.unsubscribe(1, [], version=version))

    broken_off(peer)


@statement("MQTT-3.10.4-1", "MQTT-3.10.4-2", "MQTT-3.10.4-4")
@statement311("MQTT-3.10.4-1", "MQTT-3.10.4-2", "MQTT-3.10.4-4")
def test_nothing_more_comes_for_a_filter_that_was_ended(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.subscribe(f"{topic}/+", f"{topic}/end", qos=1)

    peer.unsubscribe(f"{topic}/+")

    peer.publish(f"{topic}/a", b"unheard", qos=1)
    peer.publish(f"{topic}/end", b"end", qos=1)
    assert peer.until(b"end") == []


BAD = ["a/b#", "a/#/b", "#/", "a+", "a/+b/c", "$share/g", "$share//a", "$share/+/a"]


@pytest.mark.parametrize("filter", BAD)
@statement("MQTT-3.11.3-2", "MQTT-4.7.1-1", "MQTT-4.7.1-2")
def test_a_filter_to_unsubscribe_that_is_none_is_refused(
    join: Join, topic: str, filter: str
) -> None:
    peer = join()
    peer.subscribe(topic)

    assert peer.unsubscribe(filter, topic).reasons == [0x8F, 0]


@pytest.mark.parametrize("filter", BAD)
@statement311("MQTT-4.7.1-2", "MQTT-4.7.1-3", "MQTT-4.8.0-1")
def test_a_filter_to_unsubscribe_that_is_none_ends_a_connection_of_version_311(
    join: Join, topic: str, filter: str
) -> None:
    peer = join(4)

    peer.send(packets.unsubscribe(1, [topic, filter], version=4))

    assert peer.rest() == b""


@pytest.mark.parametrize("other", ["{0}/#", "{0}/A", "{0}/a/", "/{0}/a", "+/a", "#"])
@statement("MQTT-3.10.4-1", "MQTT-3.10.4-5")
@statement311("MQTT-3.10.4-1", "MQTT-3.10.4-5")
def test_filters_are_compared_character_by_character(
    join: Join, version: int, topic: str, other: str
) -> None:
    peer = join(version)
    peer.subscribe(f"{topic}/a")

    answer = peer.unsubscribe(other.format(topic))

    assert version == 4 or answer.reasons == [0x11]
    peer.publish(f"{topic}/a")
    assert peer.receive().topic == f"{topic}/a"


@pytest.mark.parametrize("qos", [1, 2])
@statement("MQTT-3.10.4-3")
@statement311("MQTT-3.10.4-3")
def test_a_delivery_that_was_begun_is_ended(
    join: Join, version: int, client_id: str, topic: str, qos: int
) -> None:
    keep = [(packets.SESSION_EXPIRY, 100)]
    peer = join(version, client_id, clean=False, pairs=keep)
    peer.subscribe(topic, qos=qos)
    peer.publish(topic, b"x", qos=qos)
    first = peer.take(PUBLISH)

    peer.unsubscribe(topic)
    peer.drop()

    back = join(version, client_id, clean=False, pairs=keep)
    again = back.take(PUBLISH)
    assert (again.packet_id, again.payload, again.dup) == (first.packet_id, b"x", True)
    back.ack(PUBACK if qos == 1 else PUBREC, again.packet_id)
    if qos == 2:
        assert back.take(PUBREL).packet_id == again.packet_id


@statement("MQTT-3.10.4-5", "MQTT-3.10.4-6", "MQTT-3.11.3-1", "MQTT-3.11.3-2")
@statement("MQTT-3.11.2-1", "MQTT-3.11.2-2")
@statement311("MQTT-3.10.4-5", "MQTT-3.10.4-6")
def test_several_filters_are_ended_together_and_in_order(
    join: Join, version: int, topic: str
) -> None:
    size = join(version, "fits").connack.size + 20
    peer = join(version, "fits", pairs=[(packets.MAXIMUM_PACKET_SIZE, size)])
    peer.subscribe(f"{topic}/a", f"{topic}/b", f"{topic}/end")

    answer = peer.unsubscribe(f"{topic}/a", f"{topic}/never", f"{topic}/b")

    assert answer.reasons == ([0, 0x11, 0] if version == 5 else [])
    assert version == 4 or answer.size <= size
    for name in "ab":
        peer.publish(f"{topic}/{name}")
    peer.publish(f"{topic}/end", b"end")
    assert peer.until(b"end") == []


@statement("MQTT-3.12.4-1")
@statement311("MQTT-3.12.4-1")
def test_every_ping_is_answered(join: Join, version: int) -> None:
    peer = join(version)

    peer.send(packets.packet(packets.PINGREQ, b"") * 3)

    assert [peer.read().kind for _ in range(3)] == [PINGRESP] * 3
