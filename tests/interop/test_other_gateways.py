"""A topic is the same one for MQTT and for every other gateway."""

from __future__ import annotations

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

from penstock.client import connect
from tests.http_client import Http
from tests.interop.brokers import REFERENCE, Penstock
from tests.interop.peers import Paho, Peer
from tests.wire_client import Wire

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(bool(REFERENCE), reason="about Penstock alone"),
]

Peers = Callable[..., Peer]
PATIENCE_S = 20.0


@pytest.fixture
def mqtt(broker: Penstock, peers: Peers, version: int) -> Peer:
    peer = peers(Paho, broker.port, version=version)
    peer.connect()
    return peer


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_publish_is_seen_over_lines(
    broker: Penstock, mqtt: Peer, topic: str, qos: int
) -> None:
    mqtt.publish(topic, b"before", 1)  # a topic is there from its first event on
    with Wire(broker.server.ports["line"]) as line:
        line.line()
        line.ask(f"sub {topic}")

        mqtt.publish(topic, b'{"t":21.5}', qos)

        seen = json.loads(line.line())
    assert (seen["topic"], seen["msg"]) == (topic, {"t": 21.5})


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_publish_is_seen_over_json(
    broker: Penstock, mqtt: Peer, topic: str, qos: int
) -> None:
    with Wire(broker.server.ports["consumer"]) as consumer:
        consumer.line()
        consumer.ask(f"log {topic[-20:]}")
        consumer.ask(json.dumps({"type": "SUB", "topic": topic}))

        mqtt.publish(topic, b"text", qos)

        seen = json.loads(consumer.line())
    assert (seen["topic"], seen["msg"], seen["type"]) == (topic, "text", "PUB")


@pytest.mark.parametrize("qos", [0, 1, 2])
def test_a_publish_is_seen_by_the_native_client(
    broker: Penstock, mqtt: Peer, topic: str, qos: int
) -> None:
    mqtt.publish(topic, b"before", 1)
    with (
        connect(broker.server.data) as client,
        client.subscribe(topic, start="earliest") as subscription,
    ):
        mqtt.publish(topic, b"\x00\xff", qos)

        seen = [subscription.next(PATIENCE_S) for _ in range(2)]
    assert [one and one.payload for one in seen] == [b"before", b"\x00\xff"]


def test_a_publish_is_seen_over_http_and_can_be_read_again(
    broker: Penstock, mqtt: Peer, topic: str
) -> None:
    for number in range(3):
        mqtt.publish(topic, b"%d" % number, number)
    # QoS 0 is not waited for; this one is behind it.
    mqtt.publish(topic, b"3", 1)

    page = Http(broker.server).ask("GET", events_of(topic)).json()

    assert [event["payload"] for event in page["events"]] == [0, 1, 2, 3]


def test_lines_are_seen_over_mqtt(broker: Penstock, mqtt: Peer, topic: str) -> None:
    mqtt.subscribe(topic, 2)
    with Wire(broker.server.ports["line"]) as line:
        line.line()
        line.say(f'pub {topic} {{"id":"7","msg":{{"a":1}}}}')

        seen = mqtt.receive()

    assert (seen.topic, json.loads(seen.payload)) == (topic, {"a": 1})


def test_json_is_seen_over_mqtt(broker: Penstock, mqtt: Peer, topic: str) -> None:
    mqtt.subscribe(topic, 2)
    with Wire(broker.server.ports["publisher"]) as publisher:
        publisher.say(json.dumps({"type": "PUB", "topic": topic, "msg": "hi"}))
        received = json.loads(publisher.line())
        publisher.say(json.dumps({"type": "PUBREL", "msgId": received["msgId"]}))

        seen = mqtt.receive()

    assert (seen.payload, seen.qos) == (b'"hi"', 2)


def test_the_native_client_is_seen_over_mqtt(
    broker: Penstock, mqtt: Peer, topic: str
) -> None:
    mqtt.subscribe(f"{topic}/#", 1)
    with connect(broker.server.data) as client:
        client.publish(f"{topic}/a", [b"1", b"\xff", b"3"])

    seen = mqtt.receive_all(3)

    assert [one.payload for one in seen] == [b"1", b"\xff", b"3"]
    assert {(one.topic, one.qos) for one in seen} == {(f"{topic}/a", 1)}


def test_http_is_seen_over_mqtt(broker: Penstock, mqtt: Peer, topic: str) -> None:
    mqtt.subscribe(f"{topic}/+", 0)
    path = events_of(f"{topic}/a")

    reply = Http(broker.server).ask("POST", path, {"payload": {"b": 2}})

    assert reply.status == 201, reply.body
    seen = mqtt.receive()
    assert (seen.topic, json.loads(seen.payload)) == (f"{topic}/a", {"b": 2})


def test_user_properties_are_headers_and_headers_are_user_properties(
    broker: Penstock, peers: Peers, topic: str
) -> None:
    mqtt = peers(Paho, broker.port, version=5)
    mqtt.connect()
    mqtt.subscribe(f"{topic}/down", 1)
    http = Http(broker.server)

    pairs = [("room", "kitchen"), ("priority", "9")]
    mqtt.publish(f"{topic}/up", b"1", 1, user_properties=pairs)
    topic_filter = {"payload": 1, "headers": {"unit": "°C"}}
    http.ask("POST", events_of(f"{topic}/down"), topic_filter)

    (event,) = http.ask("GET", events_of(f"{topic}/up")).json()["events"]
    assert event["headers"]["room"] == "kitchen"
    assert event["priority"] == 9
    assert ("unit", "°C") in mqtt.receive().user_properties


def test_a_handler_of_the_native_client_answers_a_device(
    broker: Penstock, peers: Peers, topic: str
) -> None:
    device = peers(Paho, broker.port, version=311)
    device.connect()
    device.subscribe(f"{topic}/commands", 2)
    device.publish(f"{topic}/state", b"start", 1)

    with (
        connect(broker.server.data) as client,
        client.subscribe(f"{topic}/state", start="earliest") as states,
    ):
        for _ in range(20):
            state = states.next(PATIENCE_S)
            assert state is not None
            client.publish(f"{topic}/commands", b"after " + state.payload)
            states.ack(state)
            command = device.receive()
            device.publish(f"{topic}/state", command.payload[-20:], 2)

    assert command.payload.startswith(b"after ")


def events_of(topic: str) -> str:
    return f"/v1/topics/{quote(topic, safe='')}/events"
