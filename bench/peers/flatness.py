"""What an event costs Penstock as the backlog grows.

The cost is the CPU time of the server, which moves less than a rate does. Publishing
is measured on a topic that already holds the backlog; delivering begins at the oldest
event, with all of the backlog ahead.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence

from bench.peers.adapter import Place
from bench.peers.field import CONTENDERS, SYNC
from bench.peers.harness import Bench, Client
from bench.peers.loader import Task
from bench.peers.penstock_native import Native
from bench.peers.processes import cpu_s
from bench.rounds import Row

BACKLOGS = (10_000, 100_000, 1_000_000, 10_000_000)
QUICK_BACKLOGS = (10_000, 100_000)
# Enough for many of the ticks that CPU time is counted in.
MEASURED = 400_000
QUICK_MEASURED = 100_000
SIZE = 100
WITHIN = 0.2
IN_FLIGHT = 4000
# For the whole of one step, filling included.
STEP_S = 120.0


def run(bench: Bench) -> list[Row]:
    if SYNC in bench.absent:
        return []
    return _backlog(bench)


def _backlog(bench: Bench) -> list[Row]:
    published: list[tuple[str, float]] = []
    delivered: list[tuple[str, float]] = []
    measured = _measured(bench)
    with bench.server(CONTENDERS[SYNC]) as server:
        place, have = server.place, 1
        for backlog in QUICK_BACKLOGS if bench.settings.quick else BACKLOGS:
            if bench.out_of_time:
                break
            have += _publish(place, backlog - have)[0]
            os.sync()
            events, cost = _publish(place, measured)
            have += events
            published.append((f"backlog of {backlog}", cost))
            delivered.append((f"backlog of {backlog}", _deliver(place, measured)))
    return [
        *_rows("publish, cost", published),
        *_rows("deliver and ack, cost", delivered),
    ]


def _measured(bench: Bench) -> int:
    return QUICK_MEASURED if bench.settings.quick else MEASURED


def _publish(place: Place, events: int) -> tuple[int, float]:
    """How many were published, and the CPU seconds of a million."""
    if events <= 0:
        return 0, 0.0
    client = Client(
        Task(
            adapter="bench.peers.penstock_line:Line",
            place=dataclasses.replace(place),
            workload="publish",
            payload_bytes=SIZE,
            in_flight=IN_FLIGHT,
            seconds=STEP_S,
            events=events,
        )
    )
    try:
        client.ready()
        sample = client.run()
    finally:
        client.close()
    return sample.events, sample.cpu_s_per_million


def _deliver(place: Place, events: int) -> float:
    """CPU seconds of a million events from the oldest on, to a new subscriber."""
    subscriber = Native(place).subscribe(IN_FLIGHT, "earliest")
    before, got = cpu_s(place.pids), 0
    deadline = time.monotonic() + STEP_S
    with subscriber.sock as sock:
        while got < events and time.monotonic() < deadline:
            count, answers = subscriber.feed(sock.recv(1 << 18))
            got += count
            for answer in answers:
                sock.sendall(answer)
        return (cpu_s(place.pids) - before) * 1e6 / max(got, 1)


def _rows(benchmark: str, costs: Sequence[tuple[str, float]]) -> list[Row]:
    """All beside the first; flat is within some percent of it."""
    rows = []
    for case, cost in costs:
        first = costs[0][1]
        ratio = cost / first if first else 1.0
        judged = case != costs[0][0]
        rows.append(
            Row(
                benchmark=benchmark,
                case=case,
                contender=SYNC,
                rate=f"{cost:.2f} µs of CPU an event",
                cpu_s_per_million=cost,
                ratio=f"{ratio:.2f}x of {costs[0][0]}" if judged else "",
                target=f"within {WITHIN:.0%}" if judged else "",
                met=abs(ratio - 1) <= WITHIN if judged else None,
            )
        )
    return rows
