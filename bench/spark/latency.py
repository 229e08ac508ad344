"""From publish to the sink topic, beside a stream whose source and sink do nothing.

Values are the moments they were published, or were due. The floor is a Python source
that makes them up and a Python sink that notes when its commit was called: what is left
is Spark. Everybody gets the same number of values a second, and the default trigger.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from bench.peers.adapter import Place
from bench.rounds import Row
from bench.spark import plain, rows, topics
from bench.spark.scene import Scene, served
from penstock.client import connect

NAME = "micro-batch latency"
CASE = "100 events/s"
RATE = 100
SECONDS = 10
LEAST_S = 5.0
WARM_UP_S = 3.0
PATIENCE_S = 120.0
LOOK_S = 0.05
MOST = 1.3
FLOOR = "made up -> nowhere, both in Python"
SOURCE = "publish -> Penstock -> nowhere"
OURS = "publish -> Penstock -> sink topic -> consumer"


@dataclass(frozen=True)
class Arrival:
    """When a value began its way, and when it was there."""

    began_s: float
    ended_s: float

    @property
    def ms(self) -> float:
        return (self.ended_s - self.began_s) * 1000


Arrivals = list[Arrival]
Contender = Callable[[Scene, Place, float], Arrivals]


def run(scene: Scene) -> list[Row]:
    seconds = max(scene.settings.scaled(SECONDS), LEAST_S)
    found: dict[str, list[tuple[float, float]]] = {}
    with served(scene.fresh("latency")) as place:
        if scene.warm_up:
            for contender in CONTENDERS.values():
                contender(scene, place, LEAST_S)
        for _ in range(scene.rounds):
            for name, contender in CONTENDERS.items():
                times = [one.ms for one in contender(scene, place, seconds)]
                parts = rows.percentile(times, 0.5), rows.percentile(times, 0.95)
                found.setdefault(name, []).append(parts)
    return rows_of(found)


def rows_of(found: dict[str, list[tuple[float, float]]]) -> list[Row]:
    """Medians of the rounds."""
    middles = {
        name: (
            rows.middle([one[0] for one in taken]),
            rows.middle([one[1] for one in taken]),
        )
        for name, taken in found.items()
    }
    table = []
    for name, (p50, p95) in middles.items():
        times = p50 / middles[FLOOR][0], p95 / middles[FLOOR][1]
        ours = name == OURS
        table.append(
            Row(
                benchmark=NAME,
                case=CASE,
                contender=name,
                rate=f"p50 {p50:.0f} ms, p95 {p95:.0f} ms",
                ratio=""
                if name == FLOOR
                else f"p50 {times[0]:.2f}x, p95 {times[1]:.2f}x of the floor",
                target=f"at most {MOST:g}x" if ours else "",
                met=max(times) <= MOST if ours else None,
            )
        )
    return table


def floor(scene: Scene, place: Place, seconds: float) -> Arrivals:
    source = scene.spark.readStream.format(plain.CLOCK)
    frame = source.options(since=repr(time.time()), rate=str(RATE)).load()
    return _stamped(scene, frame, seconds)


def source_alone(scene: Scene, place: Place, seconds: float) -> Arrivals:
    with publishing(place):
        return _stamped(scene, _topic(scene, place), seconds)


def from_topic_to_topic(scene: Scene, place: Place, seconds: float) -> Arrivals:
    sink = scene.fresh("sink").name
    servers = f"127.0.0.1:{place.ports['native']}"
    writer = _topic(scene, place).writeStream.format("penstock")
    with publishing(place), consuming(place, sink) as arrivals:
        return _measured(
            scene,
            writer.options(servers=servers, topic=sink),
            lambda: list(arrivals),
            seconds,
        )


CONTENDERS: dict[str, Contender] = {
    FLOOR: floor,
    SOURCE: source_alone,
    OURS: from_topic_to_topic,
}


def _topic(scene: Scene, place: Place) -> DataFrame:
    reader = scene.spark.readStream.format("penstock").options(
        servers=f"127.0.0.1:{place.ports['native']}",
        subscribe=topics.TOPIC,
        columns="value",
    )
    return reader.load()


def _stamped(scene: Scene, frame: DataFrame, seconds: float) -> Arrivals:
    """To nowhere; when it got there is in a file."""
    file = scene.fresh("stamps") / "stamps"
    writer = frame.writeStream.format(plain.STAMPS).option("file", str(file))
    return _measured(scene, writer, lambda: _read(file), seconds)


def _measured(
    scene: Scene,
    writer: DataStreamWriter,
    arrivals: Callable[[], Arrivals],
    seconds: float,
) -> Arrivals:
    """What arrived within some seconds, after the first batches of a query."""
    checkpoint = str(scene.fresh("checkpoint"))
    query = writer.option("checkpointLocation", checkpoint).start()
    try:
        _wait(query, arrivals)
        start_s = arrivals()[0].ended_s + WARM_UP_S

        def counted() -> Arrivals:
            return [one for one in arrivals() if one.began_s >= start_s]

        time.sleep(WARM_UP_S + seconds)
        _wait(query, counted)  # a busy machine may be slower than that
    finally:
        query.stop()
    return counted()


def _wait(query: StreamingQuery, arrivals: Callable[[], Arrivals]) -> None:
    """Until there is one."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not arrivals():
        assert time.monotonic() < deadline_s, query.exception() or "nothing came"
        time.sleep(LOOK_S)


def _read(file: Path) -> Arrivals:
    if not file.exists():
        return []
    lines = [line.split() for line in file.read_text().splitlines()]
    return [Arrival(float(line[0]), float(line[1])) for line in lines if len(line) == 2]


@contextmanager
def publishing(place: Place) -> Iterator[None]:
    """So many a second, one at a time, each the moment it is published."""
    stop = threading.Event()
    client = connect(f"127.0.0.1:{place.ports['native']}", name="bench")

    def publish() -> None:
        due_s = time.time()
        while not stop.wait(max(due_s - time.time(), 0.0)):
            client.publish(topics.TOPIC, [repr(time.time()).encode()])
            due_s = max(due_s + 1 / RATE, time.time() - 1.0)

    client.publish(topics.TOPIC, [repr(time.time()).encode()])
    thread = threading.Thread(target=publish)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        client.close()


@contextmanager
def consuming(place: Place, topic: str) -> Iterator[Arrivals]:
    """What comes to a topic, as a subscriber sees it."""
    arrivals: Arrivals = []
    stop = threading.Event()
    client = connect(f"127.0.0.1:{place.ports['native']}")
    client.ask("topics.create", name=topic)
    subscription = client.subscribe(topic, start="earliest", auto_ack=True)

    def consume() -> None:
        while not stop.is_set():
            delivery = subscription.next(timeout_s=0.2)
            if delivery is not None:
                arrivals.append(Arrival(float(delivery.payload), time.time()))

    thread = threading.Thread(target=consume)
    thread.start()
    try:
        yield arrivals
    finally:
        stop.set()
        thread.join()
        client.close()
