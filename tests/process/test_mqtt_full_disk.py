"""A server is killed under MQTT load, again and again; every promise it made holds."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings

from penstock.log.verify import verify
from tests.process.broker_load import Load
from tests.process.mqtt_clients import (
    MqttClient,
    MqttConsumer,
    MqttPublisher,
    Truth,
    number_of,
)
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

DEEP = settings.get_current_profile_name() == "deep"
KILLS = 50 if DEEP else 8
SEED = Random().getrandbits(32) if DEEP else 8
ONE, TWO, STATE = "load/one", "load/two", [f"state/{number}" for number in range(5)]
# Small files, so that a second of work rolls, writes out and checkpoints many times.
CONFIG = """
[log]
journal_file_bytes = 200_000
checkpoint_bytes = 100_000
write_out_bytes = 20_000
tail_cache_bytes = 20_000
[topics]
segment_bytes = 50_000
[broker]
page_cache_bytes = "1MiB"
"""


class Scene:
    """Publishers and subscribers of all kinds; one subscriber is mostly away."""

    def __init__(self, random: Random) -> None:
        self.publishers = [
            MqttPublisher("one", [ONE, *STATE], random, qos=1, version=4),
            MqttPublisher("two", [TWO, *STATE], random, qos=2, version=5),
            MqttPublisher("both", [ONE, TWO], random, qos=2, version=4),
        ]
        self.consumers = [
            MqttConsumer("old", "load/#", random, qos=1, version=4, drop_rate=0.01),
            MqttConsumer("new", "load/+", random, qos=2, version=5, window=20),
            MqttConsumer("shy", "load/#", random, qos=2, version=4, drop_rate=0.01),
        ]
        self.away = MqttConsumer("away", "load/#", random, qos=2, version=5)
        self.working: list[MqttClient] = [*self.consumers, *self.publishers]
        self.everybody: list[MqttClient] = [*self.working, self.away]

    def open(self, *, publishing: bool) -> None:
        for one in self.publishers:
            one.open = publishing

    def truth(self, server: Serving) -> Truth:
        truth = Truth(server.data, {"two", "both"})
        for one in self.publishers:
            one.check(truth)
        return truth

    def complete(self, truth: Truth) -> bool:
        return all(one.idle for one in self.everybody) and not any(
            one.missing(truth, "load/") for one in [*self.consumers, self.away]
        )


def test_every_promise_outlives_kills_under_load(tmp_path: Path) -> None:
    random = Random(SEED)
    scene = Scene(random)
    with noted(), serving_small_files(tmp_path) as server:
        load = Load(scene.everybody, server.ports)
        load.run(lambda: all(one.subscribed for one in [*scene.consumers, scene.away]))
        load.close()  # the one that is away stays so until the end
        load = Load(scene.working, server.ports)
        scene.open(publishing=True)
        for _ in range(KILLS):
            goal = load.facts + random.choice([1, 20, 200, 600, 1200])
            load.run(lambda goal=goal: load.facts >= goal)  # type: ignore[misc]
            restart(server, load)
            scene.truth(server)
        scene.open(publishing=False)
        load.run(lambda: all(one.idle for one in scene.publishers))
        load.close()
        truth = scene.truth(server)
        everything = Load(scene.everybody, server.ports)
        everything.run(lambda: scene.complete(truth))
        everything.close()

        for consumer in [*scene.consumers, scene.away]:
            consumer.check(truth)
        check_sent(scene, truth)
        check_retained(server, scene, truth)
        assert server.stop() == 0
        assert not verify(server.data).damages


def check_sent(scene: Scene, truth: Truth) -> None:
    """Everything came to its end: with QoS 2 all of it is there exactly once."""
    for one in scene.publishers:
        assert one.session.confirmed == one.sent.keys(), one.name
        assert all(truth.copies[payload] for payload in one.sent), one.name


def check_retained(server: Serving, scene: Scene, truth: Truth) -> None:
    """Whoever comes now gets the last of each topic."""
    late = MqttConsumer("late", "state/#", Random(0), qos=1, version=5)
    load = Load([late], server.ports)
    load.run(lambda: len(late.session.got) >= len(STATE) and late.idle)
    load.close()

    found = {one.topic: one.payload for one in late.session.got}
    assert found == {topic: truth.topics[topic][-1] for topic in STATE}
    assert all(one.retain for one in late.session.got)
    assert len(late.session.got) == len(STATE)
    assert number_of(found[STATE[0]]) > 0


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
    truth = Truth(server.data, {"writer"} if qos == 2 else set())
    assert set(truth.topics["t"]) == {one.payload for one in consumer.session.got}
    assert set(truth.topics["t"]) == wanted
    if qos == 2:
        assert len(truth.topics["t"]) == len(consumer.session.got) == sent


def told(client: MqttClient) -> bool:
    """Whether the server has said that it cannot go on."""
    return bool(client.session.reasons)


def got(client: MqttClient) -> int:
    return len({one.payload for one in client.session.got})


def restart(server: Serving, load: Load) -> None:
    server.kill()
    load.hear_out()
    server.start()
    load.ports = server.ports


@contextmanager
def serving_small_files(directory: Path) -> Iterator[Serving]:
    config = directory / "penstock.toml"
    config.write_text(CONFIG)
    flags = ["--no-maze", "--no-line", "--no-json", "--config", str(config)]
    with serving(directory, *flags) as server:
        yield server


@contextmanager
def noted() -> Iterator[None]:
    """The seed in every failure."""
    begun_s = time.monotonic()
    try:
        yield
    except AssertionError as error:
        lasted_s = time.monotonic() - begun_s
        raise AssertionError(f"seed {SEED}, after {lasted_s:.0f} s: {error}") from error
