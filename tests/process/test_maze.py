"""The maze over real sockets, against ``penstock serve``: every byte, and kill -9."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest

from penstock.log import Reader
from penstock.testing.maze import (
    MazeLoad,
    generate,
    line_of,
    notified,
    random_events,
    shuffled,
)
from tests.effort import effort
from tests.process.maze_load import run

pytestmark = pytest.mark.slow

START_S = 120.0
STOP_S = 60.0
PENSTOCK = Path(sys.executable).with_name("penstock")
# The graph matters more than in the usual mix, so more of it is looked at.
MIX = {"S": 0.5, "F": 0.25, "U": 0.05, "P": 0.19, "B": 0.01}
# Of the events, before a kill; the others come behind it.
HALF = effort(5_000, 10_000)


class Server:
    """A running ``penstock serve`` with a maze and nothing else."""

    def __init__(self, process: subprocess.Popen[bytes], ports: dict[str, int]) -> None:
        self.process = process
        self.event_port = ports["maze_event"]
        self.client_port = ports["maze_client"]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(STOP_S) == 0


@contextmanager
def serving(folder: Path, settings: str = "") -> Iterator[Server]:
    config, ready = folder / "penstock.toml", folder / "ready.json"
    config.write_text(f"[maze]\n{settings}\n")
    ready.unlink(missing_ok=True)
    command = [PENSTOCK, "serve", "--config", config, "--data", folder / "data"]
    command += ["--maze-event-port", "0", "--maze-client-port", "0"]
    command += ["--no-line", "--no-json", "--no-native", "--no-http", "--no-mqtt"]
    command += ["--ready-file", ready]
    with subprocess.Popen(
        list(map(str, command)), cwd=folder, stdout=subprocess.DEVNULL
    ) as process:
        try:
            yield Server(process, ports_in(ready, process))
        finally:
            process.kill()


def ports_in(ready: Path, process: subprocess.Popen[bytes]) -> dict[str, int]:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "the server has ended"
        if ready.exists() and (text := ready.read_text()).endswith("\n"):
            ports: dict[str, int] = json.loads(text)["ports"]
            return ports
        time.sleep(0.02)
    raise AssertionError(f"the server was not ready within {START_S} s")


def stored(folder: Path) -> list[bytes]:
    """The events of the topic that are on disk."""
    found: list[bytes] = []
    with Reader.open(folder / "data") as reader:
        offset = 0
        if "maze" not in reader.topics():
            return found  # made with the first commit
        while batches := reader.read("maze", offset):
            found += [line for batch in batches for line in batch.payloads()]
            offset = batches[-1].end_offset
    return found


def sorted_lines(load: MazeLoad) -> list[bytes]:
    lines = b"".join(load.chunks).split(b"\n")[:-1]
    return sorted(
        (line.rstrip(b"\r") for line in lines),
        key=lambda line: int(line.split(b"|")[0]),
    )


@pytest.mark.parametrize(
    ("events", "clients", "line_end"),
    [(effort(30_000, 100_000), 100, b"\n"), (5_000, 7, b"\r\n")],
)
def test_every_client_gets_every_byte_and_the_topic_has_all_events(
    tmp_path: Path, events: int, clients: int, line_end: bytes
) -> None:
    load = generate(666, events, clients, line_end=line_end)
    with serving(tmp_path) as server:
        done = run(load, server.event_port, server.client_port)
        server.stop()

    assert done.wrong == []
    assert stored(tmp_path) == sorted_lines(load)


def test_a_new_source_starts_afresh_with_number_one(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        for seed in (1, 2, 3):
            load = generate(seed, 2_000, 10, mix=MIX)
            done = run(load, server.event_port, server.client_port)

            assert done.wrong == [], f"seed {seed}"


def test_a_second_source_is_closed(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        address = ("127.0.0.1", server.event_port)
        with socket.create_connection(address, START_S) as first:
            # The first one has been accepted when one of its events has come out.
            with socket.create_connection(
                ("127.0.0.1", server.client_port), START_S
            ) as client:
                client.sendall(b"1\n")
                first.sendall(b"1|P|2|1\n")
                assert client.recv(100) == b"1|P|2|1\n"
            with socket.create_connection(address, START_S) as second:
                assert second.recv(1) == b""


@pytest.mark.parametrize("seed", range(effort(2, 5)))
def test_followers_and_numbers_outlive_a_kill(tmp_path: Path, seed: int) -> None:
    """After the kill a source goes on behind the last event that is in the topic."""
    random = Random(seed)
    clients = list(range(1, 11))
    in_order = [
        (event, line_of(event) + b"\n")
        for event in random_events(random, 2 * HALF, 40, MIX)
    ]
    expected = notified(in_order, clients)
    first = [line for _, line in in_order[:HALF]]
    # Clients hear of events before the log does: wait until some are on disk.
    with serving(tmp_path, 'durability = "sync"') as server, ExitStack() as stack:
        send_events(server, list(shuffled(random, first, 100)), clients, stack)
        wait_until_stored(tmp_path, 1)
        server.kill()
    survived = len(stored(tmp_path))
    assert 0 < survived <= HALF
    rest = [line for _, line in in_order[survived:]]
    load = MazeLoad(
        seed=seed,
        events=len(rest),
        chunks=list(shuffled(random, rest, 100)),
        expected={
            client: b"".join(
                line
                for line in lines.splitlines(keepends=True)
                if int(line.split(b"|")[0]) > survived
            )
            for client, lines in expected.items()
        },
    )

    with serving(tmp_path) as server:
        done = run(load, server.event_port, server.client_port)
        server.stop()

    assert done.wrong == [], f"seed {seed}, {survived} survived"
    assert stored(tmp_path) == [line.rstrip() for _, line in in_order]


def send_events(
    server: Server, chunks: list[bytes], clients: list[int], stack: ExitStack
) -> None:
    """Send events, with all clients connected and registered."""

    def connect(port: int) -> socket.socket:
        return stack.enter_context(
            socket.create_connection(("127.0.0.1", port), START_S)
        )

    source = connect(server.event_port)
    for client in clients:
        connect(server.client_port).sendall(b"%d\n" % client)
    for chunk in chunks:
        source.sendall(chunk)


def wait_until_stored(folder: Path, events: int) -> None:
    deadline = time.monotonic() + START_S
    while len(stored(folder)) < events:
        assert time.monotonic() < deadline, f"{events} events are not on disk"
        time.sleep(0.002)


def test_a_client_that_does_not_read_is_closed_and_holds_up_nobody(
    tmp_path: Path,
) -> None:
    load = generate(5, 800_000, 3, mix={"B": 1.0})
    limits = "max_client_buffer_bytes = 1048576"
    with serving(tmp_path, limits) as server, socket.socket() as deaf:
        # Small, or the system takes most of the load in the name of the client.
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.settimeout(START_S)
        deaf.connect(("127.0.0.1", server.client_port))
        deaf.sendall(b"0\n")

        done = run(load, server.event_port, server.client_port)

        assert done.wrong == []
        heard = 0
        try:
            while data := deaf.recv(1 << 16):
                heard += len(data)
        except ConnectionResetError:
            pass
        assert heard < len(load.expected[load.clients[0]])
