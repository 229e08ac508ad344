"""Maze routing: events a second from one source to a hundred clients.

The load comes from a generator that knows every client's exact sequence, and a run
counts only if every client got its own.
"""

from __future__ import annotations

from bench.peers.field import CONTENDERS, SYNC
from bench.peers.harness import Bench
from bench.peers.processes import cpu_s
from bench.rounds import Row
from tests.process.maze_load import measure

NAME = "maze routing"
EVENTS = 100_000
CLIENTS = 100
LEAST = 150_000


def run(bench: Bench) -> list[Row]:
    if SYNC in bench.absent:
        return []
    events = bench.settings.scaled(EVENTS)
    taken: list[tuple[float, float]] = []
    for _ in range(bench.rounds):
        with bench.server(CONTENDERS[SYNC]) as server:
            before = cpu_s(server.place.pids)
            seconds = measure(
                event_port=server.place.ports["maze_event"],
                client_port=server.place.ports["maze_client"],
                events=events,
                clients=CLIENTS,
            )
            taken.append((seconds, cpu_s(server.place.pids) - before))
    seconds, server_s = sorted(taken)[len(taken) // 2]
    return [
        Row(
            benchmark=NAME,
            case=f"{events} events",
            contender=f"{CLIENTS} clients",
            rate=f"{events / seconds:.0f} events/s routed",
            cpu_s_per_million=server_s * 1e6 / events,
            target=f"at least {LEAST} events/s",
            met=events / seconds >= LEAST,
        )
    ]
