"""Maze routing: events a second from one source to a hundred clients.

The load comes from a generator that knows every client's exact sequence. It is set
here by whoever has one; without it the row says that it was not measured.
"""

from __future__ import annotations

from typing import Protocol

from bench.peers.field import CONTENDERS, SYNC
from bench.peers.harness import Bench
from bench.peers.processes import cpu_s
from bench.rounds import Row

NAME = "maze routing"
EVENTS = 100_000
CLIENTS = 100
LEAST = 150_000


class Load(Protocol):
    def __call__(
        self, *, event_port: int, client_port: int, events: int, clients: int
    ) -> float:
        """Connect the clients, send all events, wait until all were received.

        Returns the seconds from the first byte sent to the last one received;
        raises AssertionError if a client got something else than it should.
        """


# Wired when the generator is there.
load: Load | None = None


def run(bench: Bench) -> list[Row]:
    if load is None or SYNC in bench.absent:
        return []
    events = bench.settings.scaled(EVENTS)
    taken: list[tuple[float, float]] = []
    for _ in range(bench.rounds):
        with bench.server(CONTENDERS[SYNC]) as server:
            before = cpu_s(server.place.pids)
            seconds = load(
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
