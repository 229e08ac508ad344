"""Chapter 3.1: CONNECT, but for the will and for who may come in."""

from __future__ import annotations

import time

import pytest

from tests.conformance import packets
from tests.conformance.expect import broken_off, check_refusal, refused, turned_away
from tests.conformance.packets import (
    CONNACK,
    DISCONNECT,
    MAXIMUM_PACKET_SIZE,
    REQUEST_PROBLEM,
    REQUEST_RESPONSE,
    RESPONSE_INFORMATION,
    SESSION_EXPIRY,
    TOPIC_ALIAS,
    TOPIC_ALIAS_MAXIMUM,
    TopicFilter,
    Will,
    binary,
)
from tests.conformance.peer import Join
from tests.conformance.statements import statement, statement311

FIRST = {
    "PUBLISH": packets.publish("t"),
    "SUBSCRIBE": packets.subscribe(1, [TopicFilter(filter="t")]),
    "PINGREQ": packets.packet(packets.PINGREQ, b""),
    "DISCONNECT": packets.disconnect(),
    "AUTH": packets.auth(0x18, [(packets.AUTH_METHOD, "x")]),
    "CONNACK": packets.packet(CONNACK, b"\0\0\0"),
}


@pytest.mark.parametrize("data", FIRST.values(), ids=FIRST)
@statement("MQTT-3.1.0-1", "MQTT-3.14.0-1")
@statement311("MQTT-3.1.0-1")
def test_the_first_packet_is_a_connect(dial: Join, data: bytes) -> None:
    peer = dial()

    peer.send(data)

    assert peer.rest() == b""


@statement("MQTT-3.1.0-2")
@statement311("MQTT-3.1.0-2")
def test_a_second_connect_ends_the_connection(join: Join, version: int) -> None:
    peer = join(version)

    peer.send(packets.connect(peer.client_id, version=version))

    broken_off(peer, 0x82)


@pytest.mark.parametrize("name", [b"MQTt", b"mqtt", b"MQTTX", b"MQ", b"HTTP"])
@statement("MQTT-3.1.2-1")
@statement311("MQTT-3.1.2-1")
def test_another_protocol_name_is_turned_away(
    dial: Join, version: int, name: bytes
) -> None:
    peer = dial(version)

    peer.send(packets.connect("me", version=version, name=name))

    turned_away(peer, 0x81, 0x82, 0x84)


@pytest.mark.parametrize("level", [0, 2, 6, 127])
@statement("MQTT-3.1.2-2")
@statement311("MQTT-3.1.2-2")
def test_another_protocol_level_is_refused(dial: Join, level: int) -> None:
    peer = dial()

    peer.send(packets.connect("me", version=level))

    said = peer.rest()
    if said != b"\x20\x02\x00\x01":
        check_refusal(packets.read_packet(said[0], said[2:], 5), 0x84)


@statement("MQTT-3.1.2-3", "MQTT-3.1.4-1")
@statement311("MQTT-3.1.2-3", "MQTT-3.1.4-1", "MQTT-3.2.2-6")
def test_the_reserved_connect_flag_is_zero(dial: Join, version: int) -> None:
    peer = dial(version)

    peer.send(packets.connect("me", version=version, extra_flags=1))

    turned_away(peer)


MALFORMED = {
    "user name flag without a user name": {"extra_flags": 0x80},
    "password flag without a password": {"user": "u", "extra_flags": 0x40},
    "user name without its flag": {"client_id": b"\0\1c\0\1u"},
    "password without its flag": {"client_id": b"\0\1c\0\1u\0\1p", "extra_flags": 0x80},
}


@pytest.mark.parametrize("options", MALFORMED.values(), ids=MALFORMED)
@statement("MQTT-3.1.2-16", "MQTT-3.1.2-17", "MQTT-3.1.2-18", "MQTT-3.1.2-19")
@statement311("MQTT-3.1.2-18", "MQTT-3.1.2-19", "MQTT-3.1.2-20", "MQTT-3.1.2-21")
def test_flags_and_fields_of_a_login_agree(
    dial: Join, version: int, options: dict[str, object]
) -> None:
    peer = dial(version)

    peer.send(packets.connect(**{"client_id": "c", "version": version, **options}))  # type: ignore[arg-type]  # they fit, as the table says

    turned_away(peer)


@statement311("MQTT-3.1.2-22")
def test_no_password_without_a_user_name_in_version_311(dial: Join) -> None:
    peer = dial(4)

    peer.send(packets.connect("c", version=4, password=b"p"))

    turned_away(peer)


@statement("MQTT-3.1.2-17", "MQTT-3.1.2-19")
@statement311("MQTT-3.1.2-19", "MQTT-3.1.2-21")
def test_a_login_may_be_given_where_nobody_asks_for_one(
    join: Join, version: int
) -> None:
    assert join(version, user="").is_open()
    assert join(version, user="me").is_open()
    assert join(version, user="me", password=b"\0\xff").is_open()
    assert version == 4 or join(password=b"p").is_open()


@statement("MQTT-3.1.2-22", "MQTT-3.2.2-22")
@statement311("MQTT-3.1.2-24")
def test_a_silent_client_is_cut_off_as_if_the_network_had_failed(
    join: Join, version: int, topic: str
) -> None:
    watcher = join(version)
    watcher.subscribe(topic)
    talker = join(version, keep_alive=1)
    begin_s = time.monotonic()
    silent = join(version, keep_alive=1, will=Will(topic=topic, payload=b"lost"))

    while not (heard := watcher.inbox):
        talker.ping()
        watcher.ping()
        assert time.monotonic() < begin_s + 10

    assert time.monotonic() >= begin_s + 1.5
    assert [one.payload for one in heard] == [b"lost"]
    said = silent.closed()
    assert [(one.kind, one.reason) for one in said] in ([], [(DISCONNECT, 0x8D)])
    assert talker.is_open()


@statement("MQTT-3.1.2-24")
def test_no_packet_is_larger_than_the_client_allows(join: Join, topic: str) -> None:
    peer = join(pairs=[(MAXIMUM_PACKET_SIZE, 100)])
    peer.subscribe(topic)
    head = len(packets.publish(topic))
    publisher = join()

    for size in (101 - head, 1000, 100_000, 100 - head):
        publisher.publish(topic, bytes(size))

    message = peer.receive()
    assert (message.size, len(message.payload)) == (100, 100 - head)


@pytest.mark.parametrize("qos", [1, 2])
@statement("MQTT-3.1.2-24", "MQTT-3.1.2-25")
def test_a_message_too_large_counts_as_delivered(
    join: Join, client_id: str, topic: str, qos: int
) -> None:
    small = [(MAXIMUM_PACKET_SIZE, 100), (packets.RECEIVE_MAXIMUM, 1)]
    small.append((SESSION_EXPIRY, 100))
    peer = join(client_id=client_id, pairs=small)
    peer.subscribe(topic, qos=qos)
    publisher = join()
    for payload in (bytes(200), bytes(300), b"fits"):
        publisher.publish(topic, payload, qos=qos)
    assert peer.receive().payload == b"fits"
    peer.disconnect()

    again = join(client_id=client_id, clean=False)
    publisher.publish(topic, b"later", qos=qos)

    assert again.connack.session_present
    assert again.receive().payload == b"later"


@pytest.mark.parametrize("maximum", [0, 1, 3])
@statement("MQTT-3.1.2-26", "MQTT-3.1.2-27", "MQTT-3.3.2-8", "MQTT-3.3.2-11")
def test_topic_aliases_of_the_server_are_within_the_maximum(
    join: Join, topic: str, maximum: int
) -> None:
    peer = join(pairs=[(TOPIC_ALIAS_MAXIMUM, maximum)] if maximum else [])
    peer.subscribe(f"{topic}/+")
    aliases: dict[int, str] = {}
    names = [f"{topic}/{at % 5}" for at in range(20)]

    for name in names:
        peer.publish(name, name.encode())

    for _ in names:
        message = peer.receive()
        alias = message.get(TOPIC_ALIAS)
        assert alias is None or 1 <= alias <= maximum
        if message.topic and alias is not None:
            aliases[alias] = message.topic
        assert (message.topic or aliases[alias]) == message.payload.decode()


@statement("MQTT-3.1.2-28")
def test_response_information_is_given_only_if_asked_for(join: Join) -> None:
    for pairs in ([], [(REQUEST_RESPONSE, 0)]):
        assert join(pairs=pairs).connack.get(RESPONSE_INFORMATION) is None


@statement("MQTT-3.1.2-29")
def test_reasons_are_codes_alone_if_the_client_wants_no_more(
    join: Join, topic: str
) -> None:
    peer = join(pairs=[(REQUEST_PROBLEM, 0)])

    answers = [peer.subscribe("$share//x"), peer.unsubscribe(topic)]
    answers += [one for one in [peer.publish(topic, qos=1)] if one]
    peer.ack(packets.PUBREL, 4711)
    answers.append(peer.take(packets.PUBCOMP))
    peer.ack(packets.PUBREC, 4712)
    answers.append(peer.take(packets.PUBREL))

    assert [one.properties for one in answers] == [[]] * 5


@statement("MQTT-3.1.3-1", "MQTT-3.1.2-9")
@statement311("MQTT-3.1.3-1", "MQTT-3.1.2-9")
def test_fields_of_the_payload_have_their_order(
    join: Join, version: int, topic: str
) -> None:
    watcher = join(version)
    watcher.subscribe(topic)
    peer = join(version, will=Will(topic=topic, payload=b"w"), user="u", password=b"p")

    peer.drop()

    assert watcher.receive().payload == b"w"


@statement("MQTT-3.1.3-2")
@statement311("MQTT-3.1.3-2")
def test_sessions_are_told_apart_by_the_client_id(
    join: Join, version: int, client_id: str, topic: str
) -> None:
    keep = [(SESSION_EXPIRY, 100)]
    first = join(version, client_id, clean=False, pairs=keep)
    first.subscribe(topic, qos=1)
    first.disconnect()
    other = join(version, client_id + "x", clean=False, pairs=keep)
    same = join(version, client_id, clean=False, pairs=keep)

    same.publish(topic, qos=1)

    assert not other.connack.session_present
    assert same.connack.session_present
    assert same.receive().topic == topic


@statement("MQTT-3.1.3-3")
@statement311("MQTT-3.1.3-3")
def test_a_connect_without_a_client_id_is_turned_away(dial: Join, version: int) -> None:
    peer = dial(version)

    peer.send(packets.connect(b"", version=version))

    turned_away(peer)


LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


@pytest.mark.parametrize(
    "word", ["a", "Z9", LETTERS[:23], LETTERS[23:46], LETTERS[-16:]]
)
@statement("MQTT-3.1.3-5")
@statement311("MQTT-3.1.3-5")
def test_every_plain_client_id_is_accepted(join: Join, version: int, word: str) -> None:
    assert join(version, word).is_open()


@statement("MQTT-3.1.3-6", "MQTT-3.1.3-7", "MQTT-3.2.2-16")
def test_a_client_without_an_id_is_given_one_of_its_own(join: Join) -> None:
    first, second = join(client_id=""), join(client_id="")

    assert first.client_id
    assert second.client_id
    assert first.client_id != second.client_id
    assert first.is_open()


@statement("MQTT-3.1.3-7")
def test_a_given_client_id_is_one_as_any_other(join: Join, topic: str) -> None:
    keep = [(SESSION_EXPIRY, 100)]
    first = join(client_id="", pairs=keep)
    first.subscribe(topic)
    first.disconnect()

    again = join(client_id=first.client_id, clean=False, pairs=keep)

    assert again.connack.session_present
    assert again.connack.get(packets.ASSIGNED_CLIENT_ID) is None


@statement311("MQTT-3.1.3-6")
def test_clients_without_an_id_are_not_mixed_up_in_version_311(
    join: Join, topic: str
) -> None:
    first, second = join(4, ""), join(4, "")

    first.subscribe(topic)
    second.publish(topic)

    assert first.receive().topic == topic
    assert second.is_open()


@statement311("MQTT-3.1.3-7", "MQTT-3.1.3-8", "MQTT-3.1.3-9")
def test_a_session_to_keep_needs_a_client_id_in_version_311(dial: Join) -> None:
    peer = dial(4)

    peer.send(packets.connect("", version=4, clean=False))

    refused(peer, 2)


@statement("MQTT-3.1.3-8")
@statement311("MQTT-3.1.3-9")
def test_a_very_long_client_id_is_accepted_or_refused_as_such(
    dial: Join, version: int
) -> None:
    peer = dial(version)

    peer.send(packets.connect(binary(b"x" * 65535), version=version))

    answer = peer.take(CONNACK)
    if answer.reason:
        check_refusal(answer, 0x85 if version == 5 else 2)
        assert peer.closed() == []
    else:
        assert peer.is_open()


@statement("MQTT-3.1.4-3")
@statement311("MQTT-3.1.4-2")
def test_a_client_that_comes_again_takes_over(
    join: Join, version: int, client_id: str
) -> None:
    first = join(version, client_id)

    second = join(version, client_id)

    said = first.closed()
    expected = [(DISCONNECT, 0x8E)] if version == 5 else []
    assert [(one.kind, one.reason) for one in said] == expected
    assert second.is_open()


@statement("MQTT-3.1.4-5", "MQTT-3.2.0-1", "MQTT-3.2.0-2")
@statement311("MQTT-3.1.4-4", "MQTT-3.2.0-1")
def test_a_connect_is_answered_once_and_first(
    dial: Join, version: int, client_id: str, topic: str
) -> None:
    data = packets.connect(client_id, version=version)
    data += packets.subscribe(1, [TopicFilter(filter=topic)], version=version)
    data += packets.publish(topic, b"x", version=version)
    data += packets.packet(packets.PINGREQ, b"")
    peer = dial(version)

    peer.send(data)

    said = [peer.read() for _ in range(4)]
    assert (said[0].kind, said[0].reason) == (CONNACK, 0)
    assert {one.kind for one in said[1:]} == {9, 3, 13}
