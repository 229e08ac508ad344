"""Chapters 4.3 to 4.6: delivery by QoS, sending again, the order of messages."""

from __future__ import annotations

import time

import pytest

from tests.conformance import packets
from tests.conformance.packets import (
    MESSAGE_EXPIRY,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    PUBREC,
    PUBREL,
    RECEIVE_MAXIMUM,
    SESSION_EXPIRY,
)
from tests.conformance.peer import Join
from tests.conformance.reference import REFERENCE
from tests.conformance.statements import statement, statement311

KEEP = [(SESSION_EXPIRY, 100)]


@statement("MQTT-4.3.1-1")
@statement311("MQTT-4.3.1-1")
def test_a_message_of_qos_0_is_sent_as_such(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.subscribe(topic, qos=2)

    peer.publish(topic, b"x")

    message = peer.receive()
    assert (message.qos, message.dup, message.packet_id) == (0, False, 0)


@statement("MQTT-4.3.2-3", "MQTT-4.4.0-1")
@statement311("MQTT-4.3.2-1", "MQTT-4.4.0-1")
def test_a_message_of_qos_1_is_owed_until_it_is_acknowledged(
    join: Join, version: int, client_id: str, topic: str
) -> None:
    peer = join(version, client_id, clean=False, pairs=KEEP)
    peer.subscribe(topic, qos=1)
    peer.publish(topic, b"1", qos=1)
    peer.publish(topic, b"2", qos=1)
    first, second = peer.take(PUBLISH), peer.take(PUBLISH)
    peer.ack(PUBACK, first.packet_id)
    peer.ping()
    peer.drop()

    back = join(version, client_id, clean=False, pairs=KEEP)

    again = back.receive()
    assert (again.payload, again.packet_id) == (b"2", second.packet_id)
    back.disconnect()
    last = join(version, client_id, clean=False, pairs=KEEP)
    last.publish(topic, b"end", qos=1)
    assert last.until(b"end") == []


@statement("MQTT-4.4.0-1")
@statement311("MQTT-4.4.0-1")
def test_nothing_is_sent_again_while_the_connection_lasts(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.subscribe(topic, qos=2)
    peer.publish(topic, b"1", qos=1)
    peer.publish(topic, b"2", qos=2)
    peer.take(PUBLISH), peer.take(PUBLISH)

    end_s = time.monotonic() + 1.5
    while time.monotonic() < end_s:
        peer.ping()

    assert [one for one in peer.inbox if one.kind == PUBLISH] == []


@statement("MQTT-4.3.2-5")
@statement311("MQTT-4.3.2-2")
def test_an_identifier_is_free_again_after_its_puback(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.subscribe(topic, qos=1)

    peer.publish(topic, b"x", qos=1, packet_id=9)
    peer.publish(topic, b"x", qos=1, packet_id=9, dup=True)

    assert [peer.receive().payload for _ in range(2)] == [b"x", b"x"]


@statement("MQTT-4.3.3-3", "MQTT-4.3.3-5", "MQTT-4.3.3-6", "MQTT-4.4.0-1")
@statement311("MQTT-4.3.3-1", "MQTT-4.4.0-1")
def test_what_is_owed_of_qos_2_is_said_again(
    join: Join, version: int, client_id: str, topic: str
) -> None:
    peer = join(version, client_id, clean=False, pairs=KEEP)
    peer.subscribe(topic, qos=2)
    for payload in (b"1", b"2"):
        peer.publish(topic, payload, qos=2)
    first, second = peer.take(PUBLISH), peer.take(PUBLISH)
    peer.ack(PUBREC, first.packet_id)
    assert peer.take(PUBREL).packet_id == first.packet_id
    peer.drop()

    back = join(version, client_id, clean=False, pairs=KEEP)

    owed = [back.read(), back.read()]
    said = {(one.kind, one.packet_id, one.dup) for one in owed}
    assert said == {
        (PUBREL, first.packet_id, False),
        (PUBLISH, second.packet_id, True),
    }
    back.ack(PUBCOMP, first.packet_id)
    back.ack(PUBREC, second.packet_id)
    assert back.take(PUBREL).packet_id == second.packet_id
    back.ack(PUBCOMP, second.packet_id)
    back.publish(topic, b"end", qos=2)
    assert back.until(b"end") == []


@statement("MQTT-4.3.3-4", "MQTT-4.4.0-2")
def test_a_message_the_subscriber_refused_is_done_with(
    join: Join, client_id: str, topic: str
) -> None:
    peer = join(client_id=client_id, pairs=[*KEEP, (RECEIVE_MAXIMUM, 1)])
    for qos, kind in ((1, PUBACK), (2, PUBREC)):
        peer.subscribe(topic, qos=qos)
        peer.publish(topic, b"refused", qos=qos)
        peer.ack(kind, peer.take(PUBLISH).packet_id, 0x80)
        peer.publish(topic, b"next", qos=qos)
        assert peer.receive().payload == b"next"
    assert [one.kind for one in peer.inbox] == [], "no PUBREL for it"
    peer.disconnect()

    back = join(client_id=client_id, clean=False, pairs=KEEP)
    back.publish(topic, b"end", qos=2)
    assert back.until(b"end") == []


@statement("MQTT-4.3.3-10", "MQTT-4.3.3-8")
@statement311("MQTT-4.3.3-2")
def test_a_message_of_qos_2_that_is_sent_again_is_delivered_once(
    join: Join, version: int, client_id: str, topic: str
) -> None:
    watcher = join(version)
    watcher.subscribe(topic, qos=2)
    peer = join(version, client_id, clean=False, pairs=KEEP)
    data = packets.publish(topic, b"x", qos=2, packet_id=7, version=version)
    again = bytes([data[0] | 8]) + data[1:]

    for one in (data, again):
        peer.send(one)
        answer = peer.take(PUBREC)
        assert (answer.packet_id, answer.reason < 0x80) == (7, True)
    peer.drop()
    back = join(version, client_id, clean=False, pairs=KEEP)
    back.send(again)
    assert back.take(PUBREC).packet_id == 7
    back.ack(PUBREL, 7)
    assert back.take(PUBCOMP).packet_id == 7

    back.publish(topic, b"end", qos=2)
    assert [one.payload for one in watcher.until(b"end")] == [b"x"]


@statement("MQTT-4.3.3-10")
@statement311("MQTT-4.3.3-2")
def test_a_message_of_qos_2_that_does_not_say_so_is_delivered_once_as_well(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.subscribe(topic, qos=2)
    data = packets.publish(topic, b"x", qos=2, packet_id=7, version=version)

    for _ in range(2):
        peer.send(data)
        assert peer.take(PUBREC).packet_id == 7
    peer.ack(PUBREL, 7)
    assert peer.take(PUBCOMP).packet_id == 7

    peer.publish(topic, b"end", qos=2)
    assert [one.payload for one in peer.until(b"end")] == [b"x"]


@statement("MQTT-4.3.3-11")
@statement311("MQTT-4.3.3-2")
def test_a_pubrel_after_a_reconnect_ends_the_message(
    join: Join, version: int, client_id: str, topic: str
) -> None:
    watcher = join(version)
    watcher.subscribe(topic, qos=2)
    peer = join(version, client_id, clean=False, pairs=KEEP)
    peer.send(packets.publish(topic, b"x", qos=2, packet_id=7, version=version))
    assert peer.take(PUBREC).packet_id == 7
    peer.drop()

    back = join(version, client_id, clean=False, pairs=KEEP)
    back.ack(PUBREL, 7)

    answer = back.take(PUBCOMP)
    assert (answer.packet_id, answer.reason) == (7, 0)
    assert watcher.receive().payload == b"x"
    back.ack(PUBREL, 7)
    assert back.take(PUBCOMP).packet_id == 7
    back.publish(topic, b"end", qos=2)
    assert watcher.until(b"end") == []


@statement("MQTT-4.3.3-12")
@statement311("MQTT-4.3.3-2")
def test_an_identifier_is_free_again_after_its_pubcomp(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.subscribe(topic, qos=2)

    peer.publish(topic, b"x", qos=2, packet_id=9)
    peer.publish(topic, b"x", qos=2, packet_id=9)

    assert [peer.receive().payload for _ in range(2)] == [b"x", b"x"]


@statement("MQTT-4.3.3-7", "MQTT-4.3.3-13")
def test_a_message_that_was_sent_does_not_expire(
    join: Join, client_id: str, topic: str
) -> None:
    peer = join(client_id=client_id, pairs=KEEP)
    peer.subscribe(topic, qos=2)
    pairs = [(MESSAGE_EXPIRY, 1)]
    peer.send(packets.publish(topic, b"x", qos=2, packet_id=5, pairs=pairs))
    assert peer.take(PUBREC).packet_id == 5
    end_s = time.monotonic() + 1.2
    while time.monotonic() < end_s:
        peer.ping()

    peer.ack(PUBREL, 5)
    assert peer.take(PUBCOMP).reason == 0
    peer.publish(topic, b"y", qos=2, pairs=pairs)
    message = peer.take(PUBLISH)
    while message.payload != b"y":
        message = peer.take(PUBLISH)
    end_s = time.monotonic() + 1.2
    while time.monotonic() < end_s:
        peer.ping()
    peer.ack(PUBREC, message.packet_id)

    assert peer.take(PUBREL).packet_id == message.packet_id


@statement("MQTT-4.5.0-1")
@statement311("MQTT-4.5.0-1")
def test_a_message_goes_to_every_session_that_matches(
    join: Join, version: int, topic: str
) -> None:
    names = [topic, f"{topic}/#", "+", "#", "+/#"]
    peers = [join(version) for _ in names]
    for peer, name in zip(peers, names, strict=True):
        peer.subscribe(name, qos=1)

    join(version).publish(topic, b"x", qos=1)

    assert [peer.receive().payload for peer in peers] == [b"x"] * len(names)


@pytest.mark.parametrize("qos", [0, 1, 2])
@statement("MQTT-4.6.0-5", "MQTT-4.6.0-6")
@statement311("MQTT-4.6.0-5", "MQTT-4.6.0-6")
def test_messages_come_in_the_order_they_were_published_in(
    join: Join, version: int, topic: str, qos: int
) -> None:
    peer, publisher = join(version), join(version)
    peer.subscribe(f"{topic}/#", qos=qos)
    kinds = [0, PUBACK, PUBREC]
    count = 20
    numbers = list(range(1, count + 1))

    publisher.send(
        b"".join(
            packets.publish(topic, b"%d" % at, qos=qos, packet_id=at, version=version)
            for at in numbers
        )
    )

    if qos:
        answers = [publisher.take(kinds[qos]).packet_id for _ in numbers]
        assert answers == numbers
    if qos == 2:
        for at in numbers:
            publisher.ack(PUBREL, at)
        assert [publisher.take(PUBCOMP).packet_id for _ in numbers] == numbers
    assert [int(peer.receive().payload) for _ in numbers] == numbers


@pytest.mark.parametrize("qos", [1, 2])
@statement("MQTT-4.6.0-5", "MQTT-4.4.0-1")
@statement311("MQTT-4.6.0-1", "MQTT-4.6.0-6")
def test_messages_are_sent_again_in_their_order_and_before_new_ones(
    join: Join, version: int, client_id: str, topic: str, qos: int
) -> None:
    peer = join(version, client_id, clean=False, pairs=KEEP)
    peer.subscribe(topic, qos=qos)
    publisher = join(version)
    for at in range(10):
        publisher.publish(topic, b"%d" % at, qos=qos)
    ids = [peer.take(PUBLISH).packet_id for _ in range(10)]
    peer.ack(PUBACK if qos == 1 else PUBREC, ids[3])
    if qos == 2:
        peer.ack(PUBCOMP, peer.take(PUBREL).packet_id)
    peer.ping()
    peer.drop()
    for at in range(10, 15):
        publisher.publish(topic, b"%d" % at, qos=qos)

    back = join(version, client_id, clean=False, pairs=KEEP)

    got = [back.receive() for _ in range(14)]
    assert [int(one.payload) for one in got] == [0, 1, 2, *range(4, 15)]
    assert [one.packet_id for one in got[:9]] == ids[:3] + ids[4:]
    assert [one.dup for one in got] == [True] * 9 + [False] * 5


@statement311("MQTT-4.3.2-2", "MQTT-4.6.0-2", "MQTT-4.6.0-6")
def test_a_client_of_version_311_may_send_without_waiting(
    join: Join, topic: str
) -> None:
    peer, watcher = join(4), join(4)
    watcher.subscribe(topic, qos=1)
    numbers = list(range(1, 4001))

    peer.send(
        b"".join(
            packets.publish(topic, b"%d" % at, qos=1, packet_id=at, version=4)
            for at in numbers
        )
    )

    assert [peer.read().packet_id for _ in numbers] == numbers
    if not REFERENCE:
        assert [int(watcher.receive().payload) for _ in numbers] == numbers


@statement311("MQTT-4.6.0-2", "MQTT-4.6.0-3", "MQTT-4.6.0-4")
def test_answers_come_in_the_order_of_what_they_answer(join: Join, topic: str) -> None:
    peer = join(4)
    peer.subscribe(topic, qos=2)
    ids = [9, 3, 7, 1]
    for qos, kind in ((1, PUBACK), (2, PUBREC)):
        for at in ids:
            peer.send(packets.publish(topic, qos=qos, packet_id=at, version=4))
        assert [peer.take(kind).packet_id for _ in ids] == ids
    for at in ids:
        peer.ack(PUBREL, at)
    got = [peer.take(PUBLISH) for _ in range(8)]
    owed = [one.packet_id for one in got if one.qos == 2]

    for at in reversed(owed):
        peer.ack(PUBREC, at)

    assert [peer.take(PUBREL).packet_id for _ in owed] == owed[::-1]
