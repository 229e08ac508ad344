"""Chapters 3.1.4 and 3.2: who may come in, and what the server says of itself."""

from __future__ import annotations

import pytest

from tests.conformance import packets
from tests.conformance.expect import broken_off, refused
from tests.conformance.packets import (
    CONNACK,
    MAXIMUM_PACKET_SIZE,
    MAXIMUM_QOS,
    PUBACK,
    PUBLISH,
    PUBREC,
    RETAIN_AVAILABLE,
    SESSION_EXPIRY,
    SHARED_AVAILABLE,
    SUBSCRIPTION_IDS_AVAILABLE,
    TOPIC_ALIAS,
    TOPIC_ALIAS_MAXIMUM,
    WILDCARDS_AVAILABLE,
    TopicFilter,
)
from tests.conformance.peer import Join
from tests.conformance.server import (
    PASSWORD,
    READER,
    READER_PASSWORD,
    USER,
    Endpoints,
)
from tests.conformance.statements import statement, statement311

LOGIN = {"user": USER, "password": PASSWORD}
WRONG = {
    "no login": {},
    "wrong password": {"user": USER, "password": b"guess"},
    "unknown user": {"user": "nobody", "password": PASSWORD},
    "no password": {"user": USER},
}


def not_allowed(version: int) -> tuple[int, ...]:
    return (0x86, 0x87) if version == 5 else (4, 5)


@pytest.mark.parametrize("login", WRONG.values(), ids=WRONG)
@statement("MQTT-3.1.4-2", "MQTT-3.2.2-7", "MQTT-3.2.2-8", "MQTT-4.13.2-1")
@statement311("MQTT-3.2.2-5")
def test_a_client_without_the_right_login_is_refused(
    dial: Join, secured: Endpoints, version: int, login: dict[str, object]
) -> None:
    peer = dial(version, port=secured.mqtt)

    peer.send(packets.connect("me", version=version, **login))  # type: ignore[arg-type]  # user and password, as the table says

    refused(peer, *not_allowed(version))


@statement("MQTT-3.1.4-5")
@statement311("MQTT-3.1.4-4")
def test_a_client_with_the_right_login_is_accepted(
    join: Join, secured: Endpoints, version: int
) -> None:
    assert join(version, port=secured.mqtt, **LOGIN).is_open()


@statement("MQTT-3.1.4-6")
@statement311("MQTT-3.1.4-5")
def test_nothing_is_done_for_a_client_that_was_refused(
    dial: Join, join: Join, secured: Endpoints, version: int, topic: str
) -> None:
    watcher = join(version, port=secured.mqtt, **LOGIN)
    watcher.subscribe(topic)
    peer = dial(version, port=secured.mqtt)
    data = packets.connect("me", version=version)
    data += packets.publish(topic, b"smuggled", version=version)
    data += packets.subscribe(1, [TopicFilter(filter="#")], version=version)

    peer.send(data)

    refused(peer, *not_allowed(version))
    watcher.publish(topic, b"end")
    assert watcher.until(b"end") == []


@statement("MQTT-3.2.2-6")
@statement311("MQTT-3.2.2-4")
def test_a_refusal_says_nothing_of_the_session(
    dial: Join, join: Join, secured: Endpoints, version: int, client_id: str
) -> None:
    options = {"clean": False, "pairs": [(SESSION_EXPIRY, 100)]}
    join(version, client_id, port=secured.mqtt, **LOGIN, **options).disconnect()
    peer = dial(version, port=secured.mqtt)

    peer.send(packets.connect(client_id, version=version, clean=False))

    refused(peer, *not_allowed(version))


@statement("MQTT-3.2.2-19", "MQTT-3.2.2-20")
def test_a_refusal_is_not_larger_than_the_client_allows(
    dial: Join, secured: Endpoints
) -> None:
    peer = dial(port=secured.mqtt)
    peer.send(packets.connect("me", pairs=[(MAXIMUM_PACKET_SIZE, 6)]))

    said = peer.closed()

    assert [(one.kind, one.size <= 6) for one in said] in ([], [(CONNACK, True)])


@statement("MQTT-3.4.2-1", "MQTT-3.4.2-2", "MQTT-3.4.2-3")
@statement("MQTT-3.5.2-1", "MQTT-3.5.2-2", "MQTT-3.5.2-3")
def test_refused_messages_are_told_so_in_packets_that_fit(
    join: Join, secured: Endpoints, topic: str
) -> None:
    login = {"user": READER, "password": READER_PASSWORD, "port": secured.mqtt}
    size = join(client_id="fits", **login).connack.size
    peer = join(client_id="fits", pairs=[(MAXIMUM_PACKET_SIZE, size)], **login)

    for qos, kind in ((1, PUBACK), (2, PUBREC)):
        answer = peer.publish(topic, qos=qos)
        assert answer is not None
        assert (answer.kind, answer.reason) == (kind, 0x87)
        assert answer.size <= size


@statement("MQTT-4.3.3-9")
def test_an_identifier_is_free_again_after_a_refusal(
    join: Join, secured: Endpoints, topic: str
) -> None:
    watcher = join(port=secured.mqtt, **LOGIN)
    watcher.subscribe("open/say", qos=2)
    peer = join(port=secured.mqtt, user=READER, password=READER_PASSWORD)

    for name, reason in ((topic, 0x87), ("open/say", 0), (topic, 0x87)):
        answer = peer.publish(name, b"x", qos=2, packet_id=9)
        assert answer is not None
        assert answer.reason == reason

    assert watcher.receive().payload == b"x"


@statement311("MQTT-3.3.5-2")
def test_a_message_that_may_not_be_published_is_acknowledged_or_ends_the_connection(
    join: Join, secured: Endpoints, topic: str
) -> None:
    watcher = join(4, port=secured.mqtt, **LOGIN)
    watcher.subscribe(topic, qos=1)
    login = {"user": READER, "password": READER_PASSWORD}
    peer = join(4, port=secured.mqtt, **login)

    peer.send(packets.publish(topic, b"no", version=4, qos=1, packet_id=5))
    peer.send(packets.disconnect(version=4))

    assert [one.kind for one in peer.closed()] in ([PUBACK], [])
    watcher.publish(topic, b"end", qos=1)
    assert watcher.until(b"end") == []


@statement("MQTT-3.8.4-7", "MQTT-3.9.3-1", "MQTT-3.9.3-2")
@statement("MQTT-3.9.2-1", "MQTT-3.9.2-2")
@statement311("MQTT-3.8.4-5", "MQTT-3.9.3-1", "MQTT-3.9.3-2")
def test_filters_are_allowed_or_refused_one_by_one(
    join: Join, secured: Endpoints, version: int
) -> None:
    login = {"user": READER, "password": READER_PASSWORD}
    size = join(version, "fits", port=secured.mqtt, **login).connack.size
    pairs = [(MAXIMUM_PACKET_SIZE, size)]
    peer = join(version, "fits", port=secured.mqtt, pairs=pairs, **login)

    answer = peer.subscribe("closed/a", "open/a", "#", "open/+/b", qos=1)

    no = 0x87 if version == 5 else 0x80
    assert answer.reasons == [no, 1, no, 1]
    assert version == 4 or answer.size <= size


@statement("MQTT-3.2.2-9", "MQTT-3.2.2-10")
def test_every_qos_and_feature_is_there(join: Join, topic: str) -> None:
    peer = join()

    assert peer.connack.get(MAXIMUM_QOS) is None
    for one in (
        RETAIN_AVAILABLE,
        WILDCARDS_AVAILABLE,
        SUBSCRIPTION_IDS_AVAILABLE,
        SHARED_AVAILABLE,
    ):
        assert peer.connack.get(one, 1) == 1
    topic_filters = [TopicFilter(filter=f"{topic}/{qos}", qos=qos) for qos in (0, 1, 2)]
    assert peer.subscribe(*topic_filters).reasons == [0, 1, 2]


@statement("MQTT-3.2.2-1", "MQTT-3.2.2-8")
def test_what_the_server_says_of_itself_makes_sense(join: Join) -> None:
    connack = join(keep_alive=60).connack

    assert connack.get(packets.RECEIVE_MAXIMUM, 65535) > 0
    assert connack.get(MAXIMUM_PACKET_SIZE, 1) > 0
    assert connack.get(packets.SERVER_KEEP_ALIVE) is None
    assert connack.get(packets.AUTH_METHOD) is None


@statement("MQTT-3.2.2-15")
def test_a_packet_larger_than_the_server_allows_ends_the_connection(
    join: Join, topic: str
) -> None:
    peer = join()
    largest = peer.connack.get(MAXIMUM_PACKET_SIZE, 268_435_460)

    peer.send(bytes([PUBLISH << 4]) + packets.varint(min(largest, 268_435_455)))
    peer.send(packets.text(topic) + bytes(1000))

    if largest < 268_435_455:
        broken_off(peer, 0x95)


@statement("MQTT-3.2.2-17", "MQTT-3.2.2-18", "MQTT-3.3.2-9")
def test_a_topic_alias_above_the_servers_maximum_ends_the_connection(
    join: Join, topic: str
) -> None:
    peer = join()
    maximum = peer.connack.get(TOPIC_ALIAS_MAXIMUM, 0)
    assert maximum < 65535, "there is none above it"

    peer.send(packets.publish(topic, pairs=[(TOPIC_ALIAS, maximum + 1)]))

    broken_off(peer, 0x94)
