"""The MQTT cells: Penstock, Mosquitto and amqtt with the same raw-socket client.

Ratios are those of the server's CPU time a message: the client of the pipelined cells
is as busy as the server, so a rate would say as much about it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.peers import amqtt, mosquitto, penstock_server
from bench.peers.adapter import Refused
from bench.peers.harness import Bench, Client, median
from bench.peers.mqtt_loader import Task
from bench.peers.processes import Missing, Server
from bench.rounds import Row, Sample, scratch

KIND, NAME = "mqtt", "MQTT"
LOADER = "bench.peers.mqtt_loader"
OURS, PEER, PYTHON = "Penstock", "Mosquitto", "amqtt"
CONTENDERS: dict[str, Callable[[Path, str], Server]] = {
    OURS: penstock_server.start,
    PEER: mosquitto.start,
    PYTHON: amqtt.start,
}
SIZES = {"100 B": 100, "1 KiB": 1024}
QOS = (0, 1, 2)
# How many times the CPU time of Penstock the peers shall need: in a cell, or elsewhere.
LEAST_TIMES = {
    ("1 to 1", 0, 1024): 4.0,
    ("1 to 1", 1, 1024): 4.0,
    ("1 000 to 1", 0, 100): 2.0,
    ("1 000 to 1", 1, 100): 2.0,
    ("1 000 to 1", 2, 100): 1.0,
}
LEAST, LEAST_PYTHON = 5.0, 20.0
# One message on each connection: microseconds of CPU, by QoS.
ALONE_MOST_US = {0: 60.0, 1: 110.0, 2: 170.0}
LATENCY_MOST = 2.0
ALONE_100, ALONE_1 = "100 connections, one message each", "one connection, one message"
QOS_2_IN_FLIGHT = 1000
CONNECTIONS = 10_000
CONNECTION_BYTES = 20 * 1024
# When no further cell is begun.
LIMIT_S, QUICK_LIMIT_S = 420.0, 150.0


@dataclass(frozen=True, kw_only=True)
class Cell:
    title: str
    case: str
    qos: int
    size: int
    publishers: int = 1
    subscribers: int = 1
    in_flight: int = 4000
    shape: str = "pipelined"
    kept: bool = False

    @property
    def small(self) -> bool:
        """Whether amqtt takes part: it is slow, and slow to connect to."""
        few = max(self.publishers, self.subscribers) <= 100
        return self.size == 100 and self.shape != "idle" and few


def cells(*, quick: bool) -> Iterator[Cell]:
    sizes = list(SIZES.items())[: 1 if quick else None]
    for title, publishers, subscribers, in_flight in (
        ("1 to 1", 1, 1, 4000),
        ("1 to 1 000", 1, 1000, 200),
        ("1 000 to 1", 1000, 1, 8000),
    ):
        for qos in QOS:
            # Mosquitto gets slower with all that is under way in QoS 2.
            under_way = min(in_flight, QOS_2_IN_FLIGHT) if qos == 2 else in_flight
            for name, size in sizes if title == "1 to 1" else sizes[:1]:
                yield Cell(
                    title=title,
                    case=f"QoS {qos}, {name}",
                    qos=qos,
                    size=size,
                    publishers=publishers,
                    subscribers=subscribers,
                    in_flight=under_way,
                )
    for qos in (1, 2):
        case = f"QoS {qos}, 100 B"
        yield Cell(
            title="1 to 1, kept session",
            case=case,
            qos=qos,
            size=100,
            in_flight=QOS_2_IN_FLIGHT,
            kept=True,
        )
    for qos in QOS:
        yield Cell(
            title=ALONE_100,
            case=f"QoS {qos}, 100 B",
            qos=qos,
            size=100,
            subscribers=100,
            shape="alone",
        )
    yield Cell(
        title=ALONE_1, case="QoS 0, 100 B", qos=0, size=100,
        shape="alone",
    )  # fmt: skip
    yield Cell(
        title=f"{1000 if quick else CONNECTIONS} connections",
        case="one subscription each",
        qos=0,
        size=100,
        subscribers=1000 if quick else CONNECTIONS,
        shape="idle",
    )


def run(bench: Bench, peers: list[str] | None = None) -> dict[Cell, dict[str, Sample]]:
    """All cells, the contenders of each taking turns."""
    found: dict[Cell, dict[str, Sample]] = {}
    quick = bench.settings.quick
    deadline = time.monotonic() + (QUICK_LIMIT_S if quick else LIMIT_S)
    for cell in cells(quick=quick):
        title = f"{NAME} {cell.title}, {cell.case}"
        if time.monotonic() > deadline:
            bench.failed["MQTT", title] = "no time was left"
            continue
        start = time.monotonic()
        found[cell] = measure(bench, title, cell, peers)
        print(f"{title}: {time.monotonic() - start:.0f} s", flush=True)
    return found


def rows_of(cell: Cell, samples: Mapping[str, Sample]) -> list[Row]:
    return [_row(cell, name, samples) for name in samples]


def measure(
    bench: Bench, title: str, cell: Cell, peers: list[str] | None
) -> dict[str, Sample]:
    samples: dict[str, list[Sample]] = {}
    idle = cell.shape == "idle"
    with ExitStack() as stack:
        clients: dict[str, Client] = {}
        for name in CONTENDERS:
            if name in bench.absent or peers is not None and name not in peers:
                continue
            if name == PYTHON and not cell.small:
                continue
            try:
                clients[name] = _client(bench, stack, name, cell)
                clients[name].ready()
            except Missing as error:
                bench.absent[name] = str(error)
            except Refused as error:
                bench.failed[name, title] = str(error)
                del clients[name]
        for turn in range(0 if idle else -bench.warm_ups, 1 if idle else bench.rounds):
            for name, client in list(clients.items()):
                # Nobody shall pay for the dirty pages of the one before.
                os.sync()
                try:
                    sample = client.run()
                except Refused as error:
                    bench.failed[name, title] = str(error)
                    del clients[name]
                    continue
                if turn >= 0:
                    samples.setdefault(name, []).append(sample)
    return {name: median(taken) for name, taken in samples.items()}


def _client(bench: Bench, stack: ExitStack, name: str, cell: Cell) -> Client:
    folder = stack.enter_context(scratch(bench.settings.directory))
    server = CONTENDERS[name](folder, "sync")
    stack.callback(server.stop)
    task = Task(
        place=dataclasses.replace(server.place, prefix="b"),
        shape=cell.shape,
        qos=cell.qos,
        payload_bytes=cell.size,
        publishers=cell.publishers,
        subscribers=cell.subscribers,
        in_flight=cell.in_flight,
        kept=cell.kept,
        seconds=bench.seconds,
    )
    client = Client(task, LOADER)
    stack.callback(client.close)
    return client


def _row(cell: Cell, name: str, samples: Mapping[str, Sample]) -> Row:
    sample = samples[name]
    ratio, target, met = _judged(cell, name, samples)
    return Row(
        benchmark=f"{NAME} {cell.title}",
        case=cell.case,
        contender=name,
        rate=_rate(cell, sample),
        cpu_s_per_million=sample.cpu_s_per_million,
        ratio=ratio,
        target=target,
        met=met,
    )


def _judged(
    cell: Cell, name: str, samples: Mapping[str, Sample]
) -> tuple[str, str, bool | None]:
    sample = samples[name]
    if cell.shape == "idle":
        if name != OURS:
            return "", "", None
        least = f"under {CONNECTION_BYTES // 1024} KiB each"
        return "", least, sample.facts["bytes_each"] < CONNECTION_BYTES
    if name == OURS and cell.title == ALONE_100:
        most = ALONE_MOST_US[cell.qos]
        cheap = sample.cpu_s_per_million <= most
        return "", f"at most {most:g} µs of CPU a message", cheap
    if name == OURS or OURS not in samples:
        return "", "", None
    ours = samples[OURS]
    if cell.shape == "alone" and cell.subscribers == 1:
        times = ours.facts["p50_us"] / sample.facts["p50_us"]
        target = f"{OURS} at most {LATENCY_MOST:g}x" if name == PEER else ""
        met = times <= LATENCY_MOST if target else None
        return f"{OURS} takes {times:.2f}x of its time", target, met
    with contextlib.suppress(ZeroDivisionError):
        times = sample.cpu_s_per_million / ours.cpu_s_per_million
        words = f"{times:.2f}x the CPU of {OURS}"
        if cell.title == ALONE_100 and name == PEER:
            return words, "", None
        key = cell.title, cell.qos, cell.size
        wanted = LEAST_PYTHON if name == PYTHON else LEAST_TIMES.get(key, LEAST)
        return words, f"at least {wanted:g}x", times >= wanted
    return "", "", None


def _rate(cell: Cell, sample: Sample) -> str:
    rate = f"{sample.events_per_s:.0f}"
    if cell.shape == "idle":
        kib = sample.facts["bytes_each"] / 1024
        return f"{kib:.1f} KiB each, {rate} connections/s"
    if cell.shape == "alone":
        low, high = sample.facts["p50_us"], sample.facts["p99_us"]
        return f"p50 {low:.0f} µs, p99 {high:.0f} µs, {rate} messages/s"
    return f"{rate} deliveries/s"
