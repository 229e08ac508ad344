"""A server of MQTT clients whose disk is full: it refuses, and loses nothing."""

from __future__ import annotations

import resource
from pathlib import Path
from random import Random

import pytest

from penstock.torture.load import Load
from penstock.torture.mqtt_clients import MqttClient, MqttConsumer
from penstock.torture.record import Truth
from tests.serving import serving

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("qos", [1, 2])
def test_a_full_disk_refuses_and_loses_nothing(tmp_path: Path, qos: int) -> None:
    payload = bytes(50_000)
    with serving(tmp_path, "--no-maze") as server:
        consumer = MqttConsumer("reader", "t", Random(0), qos=qos, version=5)
        writer = MqttClient("writer", qos=qos, version=5)
        load = Load([consumer, writer], server.ports)
        load.run(lambda: consumer.subscribed and writer.idle)
        limits = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (500_000, limits[1]))

        sent = 0
        while not writer.session.reasons:
            assert sent < 100, "it is never full"
            writer.session.publish("t", b"%d " % sent + payload, qos)
            sent += 1
            load.run(lambda: writer.session.publishing == 0 or told(writer))
        stored = set(writer.session.confirmed)
        assert 0 < len(stored) < sent
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, limits)
        for _ in range(3):
            writer.session.publish("t", b"%d " % sent + payload, qos)
            sent += 1
        load.run(lambda: writer.idle and consumer.idle and got(consumer) >= sent)
        load.close()
        assert server.stop() == 0

    wanted = {b"%d " % number + payload for number in range(sent)}
    assert writer.session.confirmed == wanted
    truth = Truth.of(server.data)
    assert set(truth.payloads("t")) == {one.payload for one in consumer.session.got}
    assert set(truth.payloads("t")) == wanted
    if qos == 2:
        assert len(truth.payloads("t")) == len(consumer.session.got) == sent


def told(client: MqttClient) -> bool:
    """Whether the server has said that it cannot go on."""
    return bool(client.session.reasons)


def got(client: MqttClient) -> int:
    return len({one.payload for one in client.session.got})
