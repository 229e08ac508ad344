"""Publish, micro-batch, sink topic: how much goes through, and after a burst.

The publisher, the broker and Spark share the machine. What is in the sink topic is
looked at from outside, a few times a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from bench.peers.adapter import Place
from bench.peers.processes import cpu_s
from bench.rounds import Row
from bench.spark import rows, topics
from bench.spark.publisher import publisher
from bench.spark.scene import Scene, served
from penstock.client import Client, connect

NAME = "stream, topic to topic"
SINK = "sink"
CASE = f"{topics.PAYLOAD_BYTES} B"
# Offered, so that what was promised can be seen to be kept.
OFFERED = 110_000
PROMISED = 100_000
SECONDS = 20
# Below this the first and the last batch are all there is to see.
LEAST_S = 8
BURST = 1_000_000
# What a broker holds staged is bounded, and so are batches.
MAX_PER_TRIGGER = 200_000
LOOK_S = 0.2
PATIENCE_S = 180.0


@dataclass(frozen=True)
class Look:
    """What both topics had at a moment."""

    at_s: float
    published: int
    stored: int

    @property
    def lag(self) -> int:
        return self.published - self.stored


@dataclass(frozen=True)
class Steady:
    events_per_s: float
    lag_s: float
    """The largest lag of the second half, in seconds of publishing."""
    broker_cores: float


@dataclass(frozen=True)
class Burst:
    published_s: float
    caught_up_s: float
    """From the first event until both the sink topic and the broker say so."""
    lag: int = 0
    """What was left when patience ended."""


def run(scene: Scene) -> list[Row]:
    events = OFFERED * max(scene.settings.scaled(SECONDS), LEAST_S)
    burst = BURST  # what is promised is of this many, quick or not
    steady: list[Steady] = []
    bursts: list[Burst] = []
    with (
        served(scene.fresh("stream")) as place,
        watching(place) as watch,
        copying(scene, place),
    ):
        pump(watch, place, burst)  # the first batches compile and warm up
        for _ in range(scene.rounds):
            steady.append(steadily(watch, place, events))
            bursts.append(pump(watch, place, burst))
    return [*_steady_rows(steady), burst_row(bursts, burst)]


def _steady_rows(steady: list[Steady]) -> Iterator[Row]:
    rate = rows.middle([one.events_per_s for one in steady])
    lag_s = rows.middle([one.lag_s for one in steady])
    cores = rows.middle([one.broker_cores for one in steady])
    yield Row(
        benchmark=NAME,
        case=CASE,
        contender=f"{OFFERED} events/s published, {len(steady)} times",
        rate=f"{rate:.0f} events/s, lag at most {lag_s:.1f} s",
        target=f"at least {PROMISED} events/s",
        met=rate >= PROMISED,
    )
    yield Row(
        benchmark=NAME,
        case=CASE,
        contender="the broker meanwhile",
        rate=f"{cores:.2f} cores",
    )


def burst_row(bursts: list[Burst], events: int) -> Row:
    published_s = rows.middle([one.published_s for one in bursts])
    caught_up_s = rows.middle([one.caught_up_s for one in bursts])
    lag = max(one.lag for one in bursts)
    return Row(
        benchmark=NAME,
        case=CASE,
        contender=f"a burst of {events}, published in {published_s:.1f} s",
        rate=f"lag {lag} after {caught_up_s:.1f} s,"
        f" {(events - lag) / caught_up_s:.0f} events/s",
        target="lag returns to 0",
        met=lag == 0,
    )


class Watch:
    def __init__(self, client: Client) -> None:
        self._client = client
        for topic in (topics.TOPIC, SINK):
            client.ask("topics.create", name=topic)

    def look(self) -> Look:
        """The sink first: what comes in between counts as lag."""
        stored = self._end(SINK)
        return Look(time.time(), self._end(topics.TOPIC), stored)

    def lag(self) -> int:
        """Of the query, as the broker knows it."""
        answer: Any = self._client.ask("subscriptions", topic=topics.TOPIC)
        return max((row["lag"] for row in answer["subscriptions"]), default=0)

    def _end(self, topic: str) -> int:
        answer: Any = self._client.ask("topics.show", name=topic)
        return int(answer["end_offset"])


@contextmanager
def watching(place: Place) -> Iterator[Watch]:
    with connect(f"127.0.0.1:{place.ports['native']}") as client:
        yield Watch(client)


@contextmanager
def copying(scene: Scene, place: Place) -> Iterator[StreamingQuery]:
    """A query that copies the topic to the sink topic."""
    servers = f"127.0.0.1:{place.ports['native']}"
    source = scene.spark.readStream.format("penstock").options(
        servers=servers,
        subscribe=topics.TOPIC,
        startingOffsets="earliest",
        maxOffsetsPerTrigger=MAX_PER_TRIGGER,
        columns="key,value",
    )
    sink = source.load().writeStream.format("penstock")
    query = sink.options(
        servers=servers,
        topic=SINK,
        checkpointLocation=str(scene.fresh("checkpoint")),
    ).start()
    try:
        yield query
    finally:
        query.stop()


def steadily(watch: Watch, place: Place, events: int) -> Steady:
    """As many as are offered, for a while."""
    first = watch.look()
    cpu = cpu_s(place.pids)
    with publisher(place.ports["native"], topics.TOPIC, events, OFFERED) as one:
        one.go()
        looks = [first, *_until(watch, lambda look: look.stored > first.stored)]
        looks += _until(watch, lambda look: look.stored >= first.stored + events)
        began_s, ended_s = one.times()
    # From the first batch to the last, and without what the first one brought.
    start = next(look for look in looks if look.stored > first.stored)
    end = looks[-1]
    seconds = end.at_s - start.at_s
    half_s = (began_s + ended_s) / 2
    lags = [look.lag for look in looks if half_s < look.at_s < ended_s] or [0]
    return Steady(
        events_per_s=(end.stored - start.stored) / seconds,
        lag_s=max(lags) / OFFERED,
        broker_cores=(cpu_s(place.pids) - cpu) / (end.at_s - first.at_s),
    )


def pump(watch: Watch, place: Place, events: int) -> Burst:
    """All at once; over when everything is in the sink and the broker knows it."""
    first = watch.look()
    with publisher(place.ports["native"], topics.TOPIC, events) as one:
        one.go()
        try:
            _until(watch, lambda look: look.stored >= first.stored + events)
            _until(watch, lambda look: look.lag == 0 and watch.lag() == 0)
        except Stuck as stuck:
            lag = max(stuck.look.lag, watch.lag())
        else:
            lag = 0
        caught_up_s = time.time()
        began_s, ended_s = one.times()
    return Burst(ended_s - began_s, caught_up_s - began_s, lag)


class Stuck(Exception):
    """It did not come to what was waited for."""

    def __init__(self, look: Look) -> None:
        super().__init__(f"stuck at {look}")
        self.look = look


def _until(watch: Watch, done: Callable[[Look], bool]) -> list[Look]:
    """Looks until it is so; the last one is the first where it is."""
    deadline_s = time.monotonic() + PATIENCE_S
    looks = [watch.look()]
    while not done(looks[-1]):
        if time.monotonic() >= deadline_s:
            raise Stuck(looks[-1])
        time.sleep(LOOK_S)
        looks.append(watch.look())
    return looks
