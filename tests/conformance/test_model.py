"""Clients that come and go at random get what they have to, over crashes as well."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.conformance import packets
from tests.conformance.model import KEEP, Client
from tests.conformance.packets import PUBACK, PUBCOMP, PUBREC, PUBREL
from tests.conformance.peer import WAIT_S, Peer
from tests.conformance.reference import REFERENCE
from tests.conformance.server import Endpoints
from tests.conformance.statements import statement, statement311
from tests.serving import serving

STEPS = 150
LIMITS = (65535,) if REFERENCE else (1, 2, 5, 65535)


class Scene:
    """One publisher and some subscribers; every step is drawn from the seed."""

    def __init__(self, port: Callable[[], int], seed: int, prefix: str) -> None:
        self.random = Random(seed)
        self.port = port
        names = ("a", "a/b", "a/c", "b")
        self.topics = [f"{prefix}/{name}" for name in names]
        wanted = names if REFERENCE else ("a", "+", "a/#", "a/+", "#", "+/b", "b")
        self.filters = [f"{prefix}/{name}" for name in wanted]
        self.clients = [
            Client(f"{prefix}-{at}", Random(self.random.random()), version)
            for at, version in enumerate((5, 5, 4))
        ]
        self.publisher = Peer(port())
        self.publisher_id = f"{prefix}-publisher"
        self.publisher.connect(self.publisher_id, pairs=[KEEP])
        self.number = 0

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *error: object) -> None:
        for client in self.clients:
            client.cut()
        self.publisher.drop()

    def step(self) -> None:
        client = self.random.choice(self.clients)
        if client.peer is None:
            if self.random.random() < 0.5:
                clean = self.random.random() < 0.1
                most = self.random.choice(LIMITS)
                client.connect(self.port(), clean=clean, most=most)
            else:
                self.publish()
            return
        kind = self.random.random()
        if kind < 0.08:
            client.cut()
        elif kind < 0.20:
            client.subscribe(self.random.choice(self.filters), self.random.randrange(3))
        elif kind < 0.25 and client.topic_filters:
            client.unsubscribe(self.random.choice(sorted(client.topic_filters)))
        elif kind < 0.55:
            client.pump(lazy=True)
        else:
            self.publish()

    def publish(self) -> None:
        qos = self.random.randrange(3)
        self.number += 1
        topic = self.random.choice(self.topics)
        self.publisher.publish(topic, b"%d" % self.number, qos=qos)
        self.publisher.ping()
        for client in self.clients:
            client.published(self.number, topic, qos, sure=qos > 0)

    def crash(self, restart: Callable[[], None]) -> None:
        """The server dies while a message is on its way, and comes back."""
        qos = self.random.choice((1, 2))
        self.number += 1
        topic, payload = self.random.choice(self.topics), b"%d" % self.number
        identifier = self.publisher.next_id()
        options = {"qos": qos, "packet_id": identifier}
        data = packets.publish(topic, payload, **options)  # type: ignore[arg-type]  # they are numbers
        self.publisher.send(data)
        for client in self.clients:
            client.published(self.number, topic, qos, sure=True)
        restart()
        for client in self.clients:
            client.cut()
            client.killed = True
        self.publisher.drop()
        self.publisher = Peer(self.port())
        answer = self.publisher.connect(self.publisher_id, clean=False, pairs=[KEEP])
        assert answer.session_present
        for _ in range(identifier):
            self.publisher.next_id()
        self.publisher.send(bytes([data[0] | 8]) + data[1:])
        if qos == 1:
            assert self.publisher.take(PUBACK).packet_id == identifier
            return
        assert self.publisher.take(PUBREC).packet_id == identifier
        self.publisher.ack(PUBREL, identifier)
        assert self.publisher.take(PUBCOMP).packet_id == identifier

    def end(self) -> None:
        """Everybody comes back and takes all that is left."""
        for client in self.clients:
            client.cut()
            client.connect(self.port())
        deadline_s = time.monotonic() + WAIT_S
        while any(client.missing() for client in self.clients):
            assert time.monotonic() < deadline_s, [c.missing() for c in self.clients]
            for client in self.clients:
                client.pump(lazy=False)
        for client in self.clients:
            for _ in range(5):
                client.pump(lazy=False)


@pytest.mark.parametrize("seed", range(8))
@statement("MQTT-4.3.3-10", "MQTT-4.4.0-1", "MQTT-4.5.0-1", "MQTT-4.6.0-5")
@statement311("MQTT-4.4.0-1", "MQTT-4.5.0-1", "MQTT-4.6.0-6")
def test_clients_that_come_and_go_get_what_they_have_to(
    server: Endpoints, topic: str, seed: int
) -> None:
    with Scene(lambda: server.mqtt, seed, topic) as scene:
        for _ in range(STEPS):
            scene.step()

        scene.end()


@pytest.mark.skipif(bool(REFERENCE), reason="the reference keeps nothing on disk")
@pytest.mark.parametrize("seed", range(1))
@statement("MQTT-4.1.0-1", "MQTT-4.3.3-10", "MQTT-4.4.0-1")
@statement311("MQTT-4.1.0-1")
def test_clients_get_what_they_have_to_over_crashes_of_the_server(
    tmp_path: Path, seed: int
) -> None:
    flags = ("--no-line", "--no-json", "--no-maze", "--no-http", "--mqtt-port", "0")
    with serving(tmp_path, *flags) as server:

        def restart() -> None:
            server.kill()
            server.start()

        with Scene(lambda: server.ports["mqtt"], seed, f"crash{seed}") as scene:
            for _ in range(2):
                for _ in range(STEPS // 2):
                    scene.step()
                scene.crash(restart)

            scene.end()
