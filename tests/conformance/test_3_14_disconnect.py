"""Chapters 3.14, 3.15 and 4.12: DISCONNECT, AUTH and enhanced authentication."""

from __future__ import annotations

import pytest

from tests.conformance import packets
from tests.conformance.expect import broken_off, check_refusal
from tests.conformance.packets import (
    AUTH_DATA,
    AUTH_METHOD,
    CONNACK,
    DISCONNECT,
    MAXIMUM_PACKET_SIZE,
    SESSION_EXPIRY,
    Will,
)
from tests.conformance.peer import Join
from tests.conformance.statements import statement, statement311


@statement("MQTT-3.14.2-1", "MQTT-3.14.2-2", "MQTT-3.14.4-1", "MQTT-3.14.4-2")
@statement("MQTT-3.14.2-3", "MQTT-3.14.2-4", "MQTT-4.13.2-1")
def test_a_disconnect_of_the_server_fits_and_is_the_last_it_says(
    join: Join, topic: str
) -> None:
    size = join(client_id="fits").connack.size
    peer = join(client_id="fits", pairs=[(MAXIMUM_PACKET_SIZE, size)])
    peer.subscribe(topic)

    data = packets.publish("a/#") + packets.publish(topic, b"too late")
    peer.send(data + packets.packet(packets.PINGREQ, b""))

    said = peer.closed()
    assert [one.kind for one in said] in ([], [DISCONNECT])
    assert all(one.size <= size and one.reason >= 0x80 for one in said)


@statement311("MQTT-4.8.0-1")
def test_a_server_of_version_311_closes_without_a_word(join: Join) -> None:
    peer = join(4)

    peer.send(packets.publish("a/#", version=4))

    assert peer.rest() == b""


@pytest.mark.parametrize("reason", [0x00, 0x04, 0x80, 0x83, 0x99])
@statement("MQTT-3.14.4-3", "MQTT-3.1.2-8", "MQTT-3.1.2-10")
def test_only_a_normal_goodbye_drops_the_will(
    join: Join, topic: str, reason: int
) -> None:
    watcher = join()
    watcher.subscribe(topic)
    peer = join(will=Will(topic=topic))

    peer.disconnect(reason)

    watcher.publish(topic, b"end")
    assert bool(watcher.until(b"end")) == bool(reason)


@statement("MQTT-3.14.4-1")
@statement311("MQTT-3.14.4-1", "MQTT-3.14.4-2")
def test_nothing_that_follows_a_disconnect_counts(
    join: Join, version: int, topic: str
) -> None:
    watcher = join(version)
    watcher.subscribe(topic)
    peer = join(version)
    data = packets.disconnect(version=version)
    data += packets.publish(topic, b"late", version=version)

    peer.send(data)

    assert peer.closed() == []
    watcher.publish(topic, b"end")
    assert watcher.until(b"end") == []


@statement("MQTT-4.13.1-1")
def test_a_session_that_was_to_end_cannot_be_kept_when_leaving(join: Join) -> None:
    peer = join(pairs=[(SESSION_EXPIRY, 0)])

    peer.send(packets.disconnect(0, [(SESSION_EXPIRY, 10)]))

    broken_off(peer, 0x82)


BAD = {
    "reason not defined": packets.packet(DISCONNECT, b"\x03\0"),
    "property of another packet": packets.disconnect(0, [(packets.TOPIC_ALIAS, 1)]),
    "bytes left over": packets.packet(DISCONNECT, b"\0\0x"),
}


@pytest.mark.parametrize("data", BAD.values(), ids=BAD)
@statement("MQTT-3.14.2-1", "MQTT-4.13.1-1")
def test_a_malformed_disconnect_is_not_a_goodbye(
    join: Join, topic: str, data: bytes
) -> None:
    watcher = join()
    watcher.subscribe(topic)
    peer = join(will=Will(topic=topic))

    peer.send(data)

    broken_off(peer)
    assert watcher.receive().payload == b"gone"


# Wrong as far as it has come, whatever may follow.
CUT = {
    4: {
        "a length": b"\xe0\x02",
        "reserved flags": b"\xe1",
        "a length and a byte": b"\xe0\x05\0",
    },
    5: {
        "reserved flags": b"\xe4",
        "reason not defined": b"\xe0\x02\x03",
        "property not defined": b"\xe0\x07\0\5\x7f",
        "properties longer than the packet": b"\xe0\x03\0\5",
        "property twice": b"\xe0\x0d\0\x0b\x11\0\0\0\0\x11",
        "text that is not UTF-8": b"\xe0\x09\0\7\x1f\0\1\xff",
        "text that begins as no UTF-8": b"\xe0\x09\0\7\x1f\0\4\xff",
    },
}
CUTS = [
    pytest.param(version, data, id=f"v{version}-{name}")
    for version, cases in CUT.items()
    for name, data in cases.items()
]


@pytest.mark.parametrize(("version", "data"), CUTS)
@statement("MQTT-4.13.1-1", "MQTT-3.14.4-3")
@statement311("MQTT-4.8.0-1", "MQTT-3.14.1-1")
def test_a_disconnect_that_goes_wrong_is_not_waited_for(
    join: Join, topic: str, version: int, data: bytes
) -> None:
    watcher = join()
    watcher.subscribe(topic)
    peer = join(version, will=Will(topic=topic))

    peer.send(data)

    broken_off(peer)
    assert watcher.receive().payload == b"gone"


@pytest.mark.parametrize("pairs", [[], [(AUTH_DATA, b"x")]], ids=["method", "data"])
@statement("MQTT-4.12.0-1", "MQTT-4.12.0-4", "MQTT-3.1.2-30", "MQTT-3.15.2-1")
def test_a_method_nobody_knows_is_refused(
    dial: Join, pairs: list[tuple[int, object]]
) -> None:
    peer = dial()

    peer.send(packets.connect("me", pairs=[(AUTH_METHOD, "no such"), *pairs]))

    said = peer.closed()
    assert [one.kind for one in said] in ([], [CONNACK])
    for one in said:
        check_refusal(one, 0x8C, 0x87)


@statement("MQTT-4.13.1-1")
def test_authentication_data_without_a_method_is_turned_away(dial: Join) -> None:
    peer = dial()

    peer.send(packets.connect("me", pairs=[(AUTH_DATA, b"x")]))

    said = peer.closed()
    assert [one.kind for one in said] in ([], [CONNACK])
    for one in said:
        check_refusal(one, 0x82)


@pytest.mark.parametrize("reason", [0x18, 0x19, 0x00])
@statement("MQTT-4.12.0-7", "MQTT-4.12.0-6", "MQTT-4.12.1-2", "MQTT-4.12.1-1")
def test_an_auth_nobody_asked_for_ends_the_connection(join: Join, reason: int) -> None:
    peer = join()
    assert peer.connack.get(AUTH_METHOD) is None

    peer.send(packets.auth(reason, [(AUTH_METHOD, "x")]))

    broken_off(peer, 0x82, 0x8C)


@statement("MQTT-3.15.1-1")
def test_flags_of_an_auth_are_zero(join: Join) -> None:
    peer = join()

    peer.send(packets.auth(0x18, [(AUTH_METHOD, "x")], flags=2))

    broken_off(peer)


@statement("MQTT-3.15.2-1")
def test_an_auth_with_another_reason_ends_the_connection(join: Join) -> None:
    peer = join()

    peer.send(packets.auth(0x42, [(AUTH_METHOD, "x")]))

    broken_off(peer)
