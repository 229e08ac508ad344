"""A broker is killed under load at random moments; every promise it made holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from random import Random

import pytest

from penstock.torture.client import Announcer
from penstock.torture.line_clients import LineConsumer, LinePublisher
from penstock.torture.load import Load
from penstock.torture.on_disk import CONFIG, OnDisk
from penstock.torture.record import (
    ConsumerStep,
    LoadRecord,
    StoredEvent,
    Truth,
    check_priorities,
)
from penstock.torture.scene import Scene
from tests.effort import DEEP, effort
from tests.serving import Serving, serving

pytestmark = pytest.mark.slow

KILLS = 50
SEED = Random().getrandbits(32) if DEEP else 20
BACKLOG = effort(300, 800)
# Stands between what came before a kill and what came after it.
KILLED = "$killed"


@pytest.mark.deep
def test_every_promise_outlives_kills_under_load(tmp_path: Path) -> None:
    """A short chapter of it, with accidents of every kind, is in test_torture.py."""
    random = Random(SEED)
    scene, world = Scene(random), OnDisk(tmp_path / "server", random)
    try:
        scene.begin(world)
        for number in range(KILLS):
            with noted(f"seed {SEED}, kill {number}"):
                scene.work(world, random.choice([1, 20, 200, 600, 1200]))
                world.kill()
                scene.look(world)
        with noted(f"seed {SEED}, after the last kill"):
            scene.end(world, world.kill)
            world.close()
    finally:
        world.abandon()


def test_a_backlog_is_delivered_by_priority_over_kills(tmp_path: Path) -> None:
    random = Random(SEED)
    topic, record = "orders", LoadRecord(max_lag=BACKLOG)
    consumers = [
        LineConsumer("ole", [topic], record, random),
        LineConsumer("mia", [topic], record, random, window=50),
    ]
    with noted(f"seed {SEED}"), serving_small_files(tmp_path) as server:
        announced(server, topic, "first")
        load = Load(consumers, server.ports)
        load.run(lambda: all(one.subscribed for one in consumers))
        load.close()
        publish_backlog(server, LinePublisher("lena", [topic], record, random), record)
        ranked = by_priority(Truth.of(server.data), topic)

        load = Load(consumers, server.ports)
        for end in sorted(random.sample(range(len(ranked)), effort(2, 3))):
            load.run(partial(acked_more_than, consumers[0], topic, end))
            restart(server, load)
            for one in consumers:
                one.order[topic].append(KILLED)
        last = ranked[-1]
        load.run(lambda: all(last in one.acked[topic] for one in consumers))
        load.close()

    for one in consumers:
        order = one.order[topic]
        assert list(dict.fromkeys(id_ for id_ in order if id_ != KILLED)) == ranked
        for part in between_kills(order):
            assert part == sorted(part, key=ranked.index), one.name


@pytest.mark.parametrize(
    ("known", "got", "fits"),
    [(2, "high", True), (2, "low", False), (1, "low", True), (2, "later", False)],
)
def test_the_check_of_priorities_sees_what_is_wrong(
    known: int, got: str, *, fits: bool
) -> None:
    events = [
        StoredEvent(0, "low", 0, b'"low"'),
        StoredEvent(1, "high", 7, b'"high"'),
        StoredEvent(2, "later", 7, b'"later"'),
    ]
    steps = [ConsumerStep("asked", known=known), ConsumerStep("got", got)]

    with nullcontext() if fits else pytest.raises(AssertionError, match="waited"):
        check_priorities(steps, events, ["low", "high"])


def announced(server: Serving, topic: str, text: str) -> None:
    """Publish an event that all others go before."""
    announcer = Announcer(text, [topic])
    load = Load([announcer], server.ports)
    load.run(lambda: announcer.done)
    load.close()


def acked_more_than(consumer: LineConsumer, topic: str, count: int) -> bool:
    return len(consumer.acked[topic]) > count


def publish_backlog(
    server: Serving, publisher: LinePublisher, record: LoadRecord
) -> None:
    """Publish while nobody consumes, and kill the server behind it."""
    record.open = True
    load = Load([publisher], server.ports)
    load.run(lambda: len(publisher.confirmed) >= BACKLOG)
    restart(server, load)
    load.close()


def by_priority(truth: Truth, topic: str) -> list[str]:
    """The ids of a backlog in the order of their delivery."""
    events = truth.topics[topic][1:]
    return [
        one.id for one in sorted(events, key=lambda one: (-one.priority, one.offset))
    ]


def between_kills(order: list[str]) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for id_ in order:
        if id_ == KILLED:
            parts.append([])
        else:
            parts[-1].append(id_)
    return parts


@contextmanager
def serving_small_files(directory: Path) -> Iterator[Serving]:
    config = directory / "penstock.toml"
    config.write_text(CONFIG)
    with serving(directory, "--no-maze", "--config", str(config)) as server:
        yield server


def restart(server: Serving, load: Load) -> None:
    server.kill()
    load.hear_out()
    server.start()
    load.ports = server.ports


@contextmanager
def noted(text: str) -> Iterator[None]:
    """Have a failure say where it was."""
    try:
        yield
    except BaseException as error:
        error.add_note(text)
        raise
