"""Chapters 3.4 to 3.7: PUBACK, PUBREC, PUBREL, PUBCOMP beyond the ordinary."""

from __future__ import annotations

import pytest

from tests.conformance import packets
from tests.conformance.expect import broken_off
from tests.conformance.packets import (
    DISCONNECT,
    MAXIMUM_PACKET_SIZE,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    REASON_STRING,
    REQUEST_PROBLEM,
    USER_PROPERTY,
)
from tests.conformance.peer import Join, Peer
from tests.conformance.server import Endpoints
from tests.conformance.statements import statement, statement311


@pytest.mark.parametrize("qos", [1, 2])
@statement("MQTT-3.1.2-29", "MQTT-3.4.2-2", "MQTT-3.4.2-3")
@statement("MQTT-3.5.2-2", "MQTT-3.5.2-3")
def test_reasons_in_words_are_left_out_where_they_are_not_wanted_or_do_not_fit(
    join: Join, server: Endpoints, qos: int
) -> None:
    size = join(client_id="fits").connack.size

    for pair in ((MAXIMUM_PACKET_SIZE, size), (REQUEST_PROBLEM, 0)):
        peer = join(client_id="fits", pairs=[pair])
        answer = peer.publish(server.choosy, b"no number", qos=qos)
        assert answer is not None
        assert answer.reason in (0, 0x10, 0x99)
        assert answer.size <= size
        assert answer.properties == [] or pair[0] != REQUEST_PROBLEM


@pytest.mark.parametrize("limit", [False, True])
@statement("MQTT-3.7.2-1", "MQTT-3.7.2-2", "MQTT-3.7.2-3")
def test_a_pubrel_for_nothing_is_answered(join: Join, limit: bool) -> None:
    size = join(client_id="fits").connack.size
    peer = join(client_id="fits", pairs=[(MAXIMUM_PACKET_SIZE, size)] if limit else [])

    peer.ack(PUBREL, 4711)

    answer = peer.take(PUBCOMP)
    assert answer.packet_id == 4711
    assert answer.reason in (0, 0x92)
    assert not limit or answer.size <= size


@statement311("MQTT-4.3.3-2")
def test_a_pubrel_for_nothing_is_answered_in_version_311(join: Join) -> None:
    peer = join(4)

    peer.ack(PUBREL, 4711)

    assert peer.take(PUBCOMP).packet_id == 4711


@pytest.mark.parametrize("limit", [False, True])
@statement("MQTT-3.6.2-1", "MQTT-3.6.2-2", "MQTT-3.6.2-3")
def test_a_pubrec_for_nothing_is_answered(join: Join, limit: bool) -> None:
    size = join(client_id="fits").connack.size
    peer = join(client_id="fits", pairs=[(MAXIMUM_PACKET_SIZE, size)] if limit else [])

    peer.ack(PUBREC, 4711)

    answer = peer.take(PUBREL)
    assert answer.packet_id == 4711
    assert answer.reason in (0, 0x92)
    assert not limit or answer.size <= size


@statement("MQTT-3.6.2-1", "MQTT-4.3.3-4", "MQTT-4.3.3-5")
@statement311("MQTT-4.3.3-1")
def test_a_pubrec_that_comes_twice_is_answered_twice(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.subscribe(topic, qos=2)
    peer.publish(topic, qos=2)
    message = peer.take(PUBLISH)

    for _ in range(2):
        peer.ack(PUBREC, message.packet_id)
        answer = peer.take(PUBREL)
        assert (answer.packet_id, answer.reason) == (message.packet_id, 0)


@pytest.mark.parametrize("kind", [PUBACK, PUBCOMP])
@statement("MQTT-4.13.1-1")
def test_an_acknowledgement_for_nothing_does_no_harm(
    join: Join, version: int, topic: str, kind: int
) -> None:
    peer = join(version)
    peer.subscribe(topic, qos=1)

    peer.ack(kind, 4711)

    peer.publish(topic, qos=1)
    assert peer.receive().topic == topic


@pytest.mark.parametrize("kind", [PUBACK, PUBREC])
@statement("MQTT-4.4.0-2", "MQTT-3.4.2-1", "MQTT-3.5.2-1")
def test_acknowledgements_may_have_reasons_and_properties(
    join: Join, topic: str, kind: int
) -> None:
    peer = join()
    peer.subscribe(topic, qos=1 if kind == PUBACK else 2)
    peer.publish(topic, b"1", qos=2)
    message = peer.take(PUBLISH)

    pairs = [(REASON_STRING, "nobody listens"), (USER_PROPERTY, ("a", "b"))]
    peer.ack(kind, message.packet_id, 0x10, pairs)
    if kind == PUBREC:
        peer.ack(PUBCOMP, peer.take(PUBREL).packet_id, 0, pairs)

    peer.publish(topic, b"2", qos=2)
    assert peer.receive().payload == b"2"


# What a message is answered with, and never is.
WRONG = {
    "PUBREC to QoS 1": (1, PUBREC),
    "PUBCOMP to QoS 1": (1, PUBCOMP),
    "PUBACK to QoS 2": (2, PUBACK),
    "PUBCOMP to QoS 2 in front of PUBREC": (2, PUBCOMP),
}


@pytest.mark.parametrize("keep", [False, True], ids=["clean", "kept"])
@pytest.mark.parametrize(("qos", "kind"), WRONG.values(), ids=WRONG)
@statement("MQTT-4.13.1-1", "MQTT-4.3.2-2", "MQTT-4.3.3-3", "MQTT-4.3.3-4")
@statement311("MQTT-4.8.0-1")
def test_a_wrong_answer_to_a_message_ends_the_connection(
    join: Join, version: int, topic: str, qos: int, kind: int, keep: bool
) -> None:
    pairs = [(packets.SESSION_EXPIRY, 100)] if keep else []
    peer = join(version, clean=not keep, pairs=pairs)
    peer.subscribe(topic, qos=qos)
    peer.publish(topic, qos=2)
    message = peer.take(PUBLISH)

    peer.ack(kind, message.packet_id)

    ended(peer, version)


@pytest.mark.parametrize("keep", [False, True], ids=["clean", "kept"])
@statement("MQTT-4.13.1-1", "MQTT-4.3.3-5")
@statement311("MQTT-4.8.0-1")
def test_a_message_completed_before_it_was_released_ends_the_connection(
    join: Join, version: int, topic: str, keep: bool
) -> None:
    pairs = [(packets.SESSION_EXPIRY, 100)] if keep else []
    peer = join(version, clean=not keep, pairs=pairs)
    peer.subscribe(topic, qos=2)
    peer.publish(topic, qos=2)
    message = peer.take(PUBLISH)

    both = [packets.ack(kind, message.packet_id) for kind in (PUBREC, PUBCOMP)]
    peer.send(b"".join(both))

    ended(peer, version)


@statement("MQTT-4.13.1-1", "MQTT-4.3.3-5")
@statement311("MQTT-4.8.0-1")
def test_a_message_that_was_received_is_not_acknowledged_again(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.subscribe(topic, qos=2)
    peer.publish(topic, qos=2)
    message = peer.take(PUBLISH)
    peer.ack(PUBREC, message.packet_id)
    peer.take(PUBREL)

    peer.ack(PUBACK, message.packet_id)

    ended(peer, version)


@pytest.mark.parametrize("kind", [PUBACK, PUBREC])
@statement("MQTT-4.13.1-1")
def test_a_refusal_of_the_wrong_kind_ends_the_connection(
    join: Join, topic: str, kind: int
) -> None:
    peer = join()
    peer.subscribe(topic, qos=2 if kind == PUBACK else 1)
    peer.publish(topic, qos=2)
    message = peer.take(PUBLISH)

    peer.ack(kind, message.packet_id, 0x80)

    ended(peer, 5)


@pytest.mark.parametrize("qos", [1, 2])
@statement("MQTT-4.4.0-1", "MQTT-4.3.2-3")
@statement311("MQTT-4.4.0-1", "MQTT-4.3.2-2")
def test_a_wrong_answer_leaves_the_message_to_be_sent_again(
    join: Join, version: int, client_id: str, topic: str, qos: int
) -> None:
    keep = [(packets.SESSION_EXPIRY, 100)]
    peer = join(version, client_id, clean=False, pairs=keep)
    peer.subscribe(topic, qos=qos)
    peer.publish(topic, b"x", qos=2)
    message = peer.take(PUBLISH)
    peer.ack(PUBCOMP, message.packet_id)
    peer.closed()

    back = join(version, client_id, clean=False, pairs=keep)

    again = back.receive()
    assert (again.packet_id, again.payload) == (message.packet_id, b"x")


@pytest.mark.parametrize("qos", [1, 2])
@statement("MQTT-4.4.0-1")
@statement311("MQTT-4.4.0-1")
def test_an_answer_over_the_next_connection_is_none_too_late(
    join: Join, version: int, client_id: str, topic: str, qos: int
) -> None:
    keep = [(packets.SESSION_EXPIRY, 100)]
    peer = join(version, client_id, clean=False, pairs=keep)
    peer.subscribe(topic, qos=qos)
    peer.publish(topic, b"x", qos=2)
    message = peer.take(PUBLISH)
    peer.drop()

    back = join(version, client_id, clean=False, pairs=keep)
    back.ack(PUBACK if qos == 1 else PUBREC, message.packet_id)
    if qos == 2:
        assert back.take(PUBREL).packet_id == message.packet_id
        back.ack(PUBCOMP, message.packet_id)
        back.ack(PUBCOMP, message.packet_id)

    assert back.is_open()


def ended(peer: Peer, version: int) -> None:
    """The server ends the connection: without a word, or for a protocol error."""
    said = peer.closed()
    assert [one.reason for one in said if one.kind == DISCONNECT] == (
        [0x82] if version == 5 else []
    )


BAD = {
    "no packet identifier": packets.packet(PUBACK, b"\0"),
    "a property that is not allowed": packets.ack(PUBACK, 1, 0, [(17, 5)]),
    "bytes left over": packets.packet(PUBACK, b"\0\1\0\0x"),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
@statement("MQTT-4.13.1-1")
def test_a_malformed_acknowledgement_ends_the_connection(
    join: Join, data: bytes
) -> None:
    peer = join()

    peer.send(data)

    broken_off(peer)
