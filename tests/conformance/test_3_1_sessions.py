"""Chapters 3.1.2.4, 3.1.2.11, 3.2.2.1, 4.1: which sessions are kept, and how long."""

from __future__ import annotations

import time

from tests.conformance.packets import SESSION_EXPIRY
from tests.conformance.peer import Join
from tests.conformance.reference import REFERENCE
from tests.conformance.statements import statement, statement311

KEEP = [(SESSION_EXPIRY, 100)]


@statement("MQTT-3.1.2-4", "MQTT-3.1.4-4", "MQTT-3.2.2-2")
@statement311("MQTT-3.1.2-6", "MQTT-3.1.4-3", "MQTT-3.2.2-1")
def test_a_clean_start_drops_the_session_there_was(
    join: Join, version: int, client_id: str, topic: str
) -> None:
    first = join(version, client_id, clean=False, pairs=KEEP)
    first.subscribe(topic, qos=1)
    first.disconnect()
    join(version).publish(topic, b"waiting", qos=1)

    again = join(version, client_id, clean=True)

    assert not again.connack.session_present
    again.publish(topic, b"unheard", qos=1)
    again.subscribe(f"{topic}/end", qos=1)
    again.publish(f"{topic}/end", b"end", qos=1)
    assert again.until(b"end") == []


@statement("MQTT-3.1.2-5", "MQTT-3.2.2-3", "MQTT-3.1.2-23", "MQTT-4.5.0-1")
@statement311("MQTT-3.1.2-4", "MQTT-3.1.2-5", "MQTT-3.2.2-2", "MQTT-4.5.0-1")
def test_a_session_is_resumed_with_what_it_missed(
    join: Join, version: int, client_id: str, topic: str
) -> None:
    first = join(version, client_id, clean=False, pairs=KEEP)
    first.subscribe(f"{topic}/+", qos=2)
    first.drop()
    publisher = join(version)
    publisher.publish(f"{topic}/1", b"one", qos=1)
    publisher.publish(f"{topic}/2", b"two", qos=2)

    again = join(version, client_id, clean=False, pairs=KEEP)

    assert again.connack.session_present
    got = {(one.payload, one.qos) for one in (again.receive(), again.receive())}
    assert got == {(b"one", 1), (b"two", 2)}


@statement("MQTT-3.1.2-6", "MQTT-3.2.2-3")
@statement311("MQTT-3.1.2-4", "MQTT-3.2.2-3")
def test_a_session_that_is_not_there_is_made(
    join: Join, version: int, client_id: str
) -> None:
    peer = join(version, client_id, clean=False, pairs=KEEP)

    assert not peer.connack.session_present
    assert peer.is_open()


@statement("MQTT-4.1.0-2", "MQTT-3.1.4-4")
@statement311("MQTT-3.1.2-6")
def test_a_session_that_was_not_to_be_kept_is_gone(
    join: Join, version: int, client_id: str, topic: str
) -> None:
    first = join(version, client_id, clean=True)
    first.subscribe(topic, qos=1)
    first.disconnect()

    again = join(version, client_id, clean=False)

    assert not again.connack.session_present


@statement("MQTT-4.1.0-2")
def test_a_session_ends_when_its_time_is_over(
    join: Join, client_id: str, topic: str
) -> None:
    short = [(SESSION_EXPIRY, 1)]
    first = join(client_id=client_id, pairs=short)
    first.subscribe(topic, qos=1)
    first.disconnect()
    watcher = join()
    end_s = time.monotonic() + (2.2 if REFERENCE else 1.2)
    while time.monotonic() < end_s:
        watcher.ping()

    again = join(client_id=client_id, clean=False, pairs=short)

    assert not again.connack.session_present


@statement("MQTT-3.1.2-23", "MQTT-4.1.0-1")
def test_a_session_does_not_end_before_its_time_or_while_it_is_used(
    join: Join, client_id: str, topic: str
) -> None:
    peer = join(client_id=client_id, pairs=[(SESSION_EXPIRY, 1)])
    peer.subscribe(topic, qos=1)
    end_s = time.monotonic() + 1.5
    while time.monotonic() < end_s:
        peer.ping()
    peer.disconnect()

    again = join(client_id=client_id, clean=False, pairs=[(SESSION_EXPIRY, 1)])

    assert again.connack.session_present
    again.publish(topic, qos=1)
    assert again.receive().topic == topic


@statement("MQTT-3.1.2-23")
def test_the_time_of_a_session_can_be_changed_when_leaving(
    join: Join, client_id: str, topic: str
) -> None:
    first = join(client_id=client_id, pairs=[(SESSION_EXPIRY, 1)])
    first.subscribe(topic, qos=1)
    first.disconnect(0, [(SESSION_EXPIRY, 100)])
    second = join(client_id=client_id, clean=False, pairs=KEEP)
    assert second.connack.session_present

    second.disconnect(0, [(SESSION_EXPIRY, 0)])

    assert not join(client_id=client_id, clean=False).connack.session_present


@statement("MQTT-4.1.0-1")
@statement311("MQTT-4.1.0-1", "MQTT-4.1.0-2")
def test_a_session_is_taken_over_with_its_subscriptions(
    join: Join, version: int, client_id: str, topic: str
) -> None:
    first = join(version, client_id, clean=False, pairs=KEEP)
    first.subscribe(topic, qos=1)
    second = join(version, client_id, clean=False, pairs=KEEP)

    second.publish(topic, qos=1)

    assert second.connack.session_present
    assert second.receive().topic == topic


@statement311("MQTT-3.1.2-7")
def test_retained_messages_outlive_the_session(
    join: Join, version: int, client_id: str, topic: str
) -> None:
    first = join(version, client_id, clean=True)
    first.publish(topic, b"kept", qos=1, retain=True)
    first.disconnect()

    second = join(version, client_id, clean=True)
    second.subscribe(topic)

    assert second.receive().payload == b"kept"
