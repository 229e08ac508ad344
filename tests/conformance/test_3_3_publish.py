"""Chapter 3.3: PUBLISH, but for what is retained."""

from __future__ import annotations

import time

import pytest

from tests.conformance import packets
from tests.conformance.expect import broken_off
from tests.conformance.packets import (
    CONTENT_TYPE,
    CORRELATION_DATA,
    MESSAGE_EXPIRY,
    PAYLOAD_FORMAT,
    PUBACK,
    PUBLISH,
    PUBREC,
    RECEIVE_MAXIMUM,
    RESPONSE_TOPIC,
    SESSION_EXPIRY,
    SUBSCRIPTION_ID,
    TOPIC_ALIAS,
    TOPIC_ALIAS_MAXIMUM,
    USER_PROPERTY,
    TopicFilter,
    binary,
)
from tests.conformance.peer import Join
from tests.conformance.statements import statement, statement311

KEEP = [(SESSION_EXPIRY, 100)]


@pytest.mark.parametrize("qos", [1, 2])
@statement("MQTT-3.3.1-1", "MQTT-4.3.2-2", "MQTT-4.3.3-2")
@statement311("MQTT-3.3.1-1", "MQTT-4.3.2-1", "MQTT-4.3.3-1")
def test_a_message_is_marked_as_sent_again_only_if_it_is(
    join: Join, version: int, client_id: str, topic: str, qos: int
) -> None:
    first = join(version, client_id, clean=False, pairs=KEEP)
    first.subscribe(topic, qos=qos)
    first.publish(topic, b"x", qos=qos)
    before = first.take(PUBLISH)
    first.drop()

    after = join(version, client_id, clean=False, pairs=KEEP).take(PUBLISH)

    assert (before.dup, after.dup) == (False, True)
    assert (before.packet_id, before.payload) == (after.packet_id, after.payload)


@statement("MQTT-3.3.1-2")
@statement311("MQTT-3.3.1-2")
def test_a_message_of_qos_0_is_never_marked_as_sent_again(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)

    peer.send(packets.publish(topic, version=version, dup=True))

    broken_off(peer)


@pytest.mark.parametrize("qos", [1, 2])
@statement("MQTT-3.3.1-3")
@statement311("MQTT-3.3.1-3")
def test_the_mark_of_a_publisher_is_not_passed_on(
    join: Join, version: int, topic: str, qos: int
) -> None:
    watcher = join(version)
    watcher.subscribe(topic, qos=qos)
    publisher = join(version)

    publisher.publish(topic, b"x", qos=qos, dup=True)

    assert not watcher.receive().dup


@statement("MQTT-3.3.1-4")
@statement311("MQTT-3.3.1-4")
def test_qos_3_ends_the_connection(join: Join, version: int, topic: str) -> None:
    peer = join(version)

    peer.send(packets.publish(topic, version=version, qos=3, packet_id=1))

    broken_off(peer)


@pytest.mark.parametrize("name", ["a/+", "a/#", "#", "a+b", "a#"])
@statement("MQTT-3.3.2-2", "MQTT-4.7.0-1")
@statement311("MQTT-3.3.2-2", "MQTT-4.7.1-1")
def test_a_topic_with_wildcards_ends_the_connection(
    join: Join, version: int, name: str
) -> None:
    peer = join(version)

    peer.send(packets.publish(name, version=version))

    broken_off(peer, 0x81, 0x82, 0x90)


@pytest.mark.parametrize(
    ("filter", "name"), [("+", ""), ("#", "/a"), ("+/a", "/a"), ("{0}/a", "/a")]
)
@statement("MQTT-3.3.2-3")
@statement311("MQTT-3.3.2-3")
def test_messages_have_the_name_they_were_published_to(
    join: Join, version: int, topic: str, filter: str, name: str
) -> None:
    peer = join(version)
    peer.subscribe(filter.format(topic))

    peer.publish(topic + name, b"x")

    assert peer.receive().topic == topic + name


@statement("MQTT-3.3.2-4", "MQTT-3.3.2-15", "MQTT-3.3.2-16", "MQTT-3.3.2-17")
@statement("MQTT-3.3.2-18", "MQTT-3.3.2-20")
def test_properties_are_passed_on_unaltered(join: Join, topic: str) -> None:
    peer = join()
    pairs = [
        (PAYLOAD_FORMAT, 1),
        (CONTENT_TYPE, "text/plain; charset=utf-8"),
        (RESPONSE_TOPIC, "answers/\u00e9"),
        (CORRELATION_DATA, bytes(range(256))),
        (USER_PROPERTY, ("b", "2")),
        (USER_PROPERTY, ("a", "1")),
        (USER_PROPERTY, ("b", "")),
        (USER_PROPERTY, ("", "\U0001f680")),
    ]

    for qos in (0, 1, 2):
        peer.subscribe(topic, qos=qos)
        peer.publish(topic, b"x", qos=qos, pairs=pairs)
        message = peer.receive()
        assert sorted(map(repr, message.properties)) == sorted(map(repr, pairs))
        assert message.all(USER_PROPERTY) == [value for _, value in pairs[4:]]


@statement("MQTT-3.3.2-4", "MQTT-3.3.2-17", "MQTT-3.3.2-18")
def test_properties_are_kept_for_those_who_are_away(
    join: Join, client_id: str, topic: str
) -> None:
    away = join(client_id=client_id, pairs=KEEP)
    away.subscribe(topic, qos=1)
    away.disconnect()
    pairs = [(PAYLOAD_FORMAT, 0), (CORRELATION_DATA, b""), (CONTENT_TYPE, "")]
    pairs += [(USER_PROPERTY, (key, key)) for key in "cbac"]
    join().publish(topic, b"x", qos=1, pairs=pairs)

    message = join(client_id=client_id, clean=False, pairs=KEEP).receive()

    assert message.get(CORRELATION_DATA) == b""
    assert message.get(CONTENT_TYPE) == ""
    assert message.get(PAYLOAD_FORMAT, 0) == 0
    assert [key for key, _ in message.all(USER_PROPERTY)] == list("cbac")


@statement("MQTT-3.3.2-5", "MQTT-3.3.2-6")
def test_a_message_that_expired_is_not_delivered_any_more(
    join: Join, client_id: str, topic: str
) -> None:
    away = join(client_id=client_id, pairs=KEEP)
    away.subscribe(topic, qos=1)
    away.disconnect()
    publisher = join()
    publisher.publish(topic, b"short", qos=1, pairs=[(MESSAGE_EXPIRY, 1)])
    publisher.publish(topic, b"long", qos=1, pairs=[(MESSAGE_EXPIRY, 100)])
    begin_s = time.monotonic()
    while time.monotonic() < begin_s + 2.1:
        publisher.ping()

    back = join(client_id=client_id, clean=False, pairs=KEEP)

    message = back.receive()
    assert message.payload == b"long"
    assert 90 <= message.get(MESSAGE_EXPIRY) <= 98


@statement("MQTT-3.3.2-5", "MQTT-3.3.2-6")
def test_a_retained_message_expires_as_well(join: Join, topic: str) -> None:
    peer = join()
    pairs = [(MESSAGE_EXPIRY, 1)]
    peer.publish(f"{topic}/1", b"short", qos=1, retain=True, pairs=pairs)
    pairs = [(MESSAGE_EXPIRY, 100)]
    peer.publish(f"{topic}/2", b"long", qos=1, retain=True, pairs=pairs)
    begin_s = time.monotonic()
    while time.monotonic() < begin_s + 2.1:
        peer.ping()

    peer.subscribe(f"{topic}/+")

    message = peer.receive()
    assert message.payload == b"long"
    assert 90 <= message.get(MESSAGE_EXPIRY) <= 98


@statement("MQTT-3.3.2-12")
def test_every_topic_alias_up_to_the_maximum_is_understood(
    join: Join, topic: str
) -> None:
    peer = join()
    maximum = peer.connack.get(TOPIC_ALIAS_MAXIMUM, 0)
    if not maximum:
        pytest.skip("the server takes no topic aliases")
    peer.subscribe(f"{topic}/+")
    names = {at: f"{topic}/{at}" for at in (1, 2, maximum // 2 or 1, maximum)}

    for alias, name in names.items():
        peer.publish(name, name.encode(), pairs=[(TOPIC_ALIAS, alias)])
        peer.publish("", name.encode(), pairs=[(TOPIC_ALIAS, alias)])
    last = f"{topic}/last"
    peer.publish(last, last.encode(), pairs=[(TOPIC_ALIAS, 1)])
    for alias, name in {**names, 1: last}.items():
        peer.publish("", name.encode(), pairs=[(TOPIC_ALIAS, alias)])

    for _ in range(3 * len(names) + 1):
        message = peer.receive()
        assert message.topic == message.payload.decode()
        assert message.get(TOPIC_ALIAS) is None, "nobody asked for it"


@statement("MQTT-3.3.2-7")
def test_a_topic_alias_ends_with_its_connection(
    join: Join, client_id: str, topic: str
) -> None:
    first = join(client_id=client_id, pairs=KEEP)
    if not first.connack.get(TOPIC_ALIAS_MAXIMUM):
        pytest.skip("the server takes no topic aliases")
    first.publish(topic, qos=1, pairs=[(TOPIC_ALIAS, 1)])
    first.disconnect()
    second = join(client_id=client_id, clean=False, pairs=KEEP)

    second.send(packets.publish("", pairs=[(TOPIC_ALIAS, 1)]))

    broken_off(second, 0x82, 0x94)


@statement("MQTT-3.3.2-8")
def test_topic_alias_0_ends_the_connection(join: Join, topic: str) -> None:
    peer = join()

    peer.send(packets.publish(topic, pairs=[(TOPIC_ALIAS, 0)]))

    broken_off(peer, 0x81, 0x82, 0x94)


BAD_PROPERTIES = {
    "response topic cut": (RESPONSE_TOPIC, binary(b"a\xe2\x82")),
    "response topic with +": (RESPONSE_TOPIC, "a/+"),
    "response topic with #": (RESPONSE_TOPIC, "a/#"),
    "content type cut": (CONTENT_TYPE, binary(b"a\xe2\x82")),
    "content type with null": (CONTENT_TYPE, binary(b"a\0")),
}


@pytest.mark.parametrize("pair", BAD_PROPERTIES.values(), ids=BAD_PROPERTIES)
@statement("MQTT-3.3.2-13", "MQTT-3.3.2-14", "MQTT-3.3.2-19")
def test_bad_texts_in_properties_end_the_connection(
    join: Join, topic: str, pair: tuple[int, object]
) -> None:
    peer = join()

    peer.send(packets.publish(topic, pairs=[pair]))

    broken_off(peer, 0x81, 0x82, 0x90)


@statement("MQTT-3.3.4-1", "MQTT-3.4.2-1", "MQTT-3.5.2-1")
@statement311("MQTT-3.3.4-1")
def test_every_qos_has_its_answer(join: Join, version: int, topic: str) -> None:
    peer = join(version)

    for qos, kind in ((0, 0), (1, PUBACK), (2, PUBREC)):
        answer = peer.publish(topic, qos=qos)
        assert (answer.kind if answer else 0) == kind
        assert answer is None or answer.reason in (0, 0x10)
    peer.ping()
    assert peer.inbox == []


@statement("MQTT-3.3.4-2")
@statement311("MQTT-3.3.5-1")
def test_overlapping_subscriptions_get_the_highest_qos(
    join: Join, version: int, topic: str
) -> None:
    peer = join(version)
    peer.subscribe(
        TopicFilter(filter=f"{topic}/+", qos=2),
        TopicFilter(filter=f"{topic}/#", qos=0),
        topic,
    )

    peer.publish(f"{topic}/a", b"x", qos=2)
    peer.publish(f"{topic}/a", b"end", qos=2)

    got = [peer.receive()]
    while (got[-1].payload, got[-1].qos) != (b"end", 2):
        got.append(peer.receive())
    assert max(one.qos for one in got if one.payload == b"x") == 2


@statement("MQTT-3.3.4-3", "MQTT-3.3.4-4", "MQTT-3.3.4-5")
def test_subscription_identifiers_come_with_the_message(join: Join, topic: str) -> None:
    peer = join()
    peer.subscribe(f"{topic}/+", pairs=[(SUBSCRIPTION_ID, 7)])
    peer.subscribe(f"{topic}/#", pairs=[(SUBSCRIPTION_ID, 268_435_455)])
    peer.subscribe(f"{topic}/a")

    peer.publish(f"{topic}/a", b"x")
    peer.publish(f"{topic}/b/c", b"end")

    seen = [number for one in peer.until(b"end") for number in one.all(SUBSCRIPTION_ID)]
    assert sorted(seen) == [7, 268_435_455]


@statement("MQTT-3.3.4-3")
def test_a_subscription_identifier_ends_with_its_subscription(
    join: Join, topic: str
) -> None:
    peer = join()
    peer.subscribe(topic, pairs=[(SUBSCRIPTION_ID, 7)])
    peer.subscribe(topic)

    peer.publish(topic)

    assert peer.receive().all(SUBSCRIPTION_ID) == []


@statement("MQTT-3.3.4-6")
def test_a_publisher_that_gives_a_subscription_identifier_is_cut_off(
    join: Join, topic: str
) -> None:
    peer = join()

    peer.send(packets.publish(topic, pairs=[(SUBSCRIPTION_ID, 1)]))

    broken_off(peer)


@statement("MQTT-3.3.4-7")
def test_more_unsettled_messages_than_the_server_takes_end_the_connection(
    join: Join, topic: str
) -> None:
    peer = join()
    maximum = peer.connack.get(RECEIVE_MAXIMUM, 65535)
    if maximum == 65535:
        pytest.skip("there are not more packet identifiers than the server takes")

    peer.send(
        b"".join(
            packets.publish(topic, qos=2, packet_id=at) for at in range(1, maximum + 2)
        )
    )

    broken_off(peer, 0x93)
