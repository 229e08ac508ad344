"""Runs a maze load against a server over real sockets, and compares every byte.

    python -m tests.process.maze_load [--events N] [--clients N] [--seed N] ...

Works against any server that speaks the protocol: the source connects first, then all
clients, which send their ids; then the events go, and the source closes. A run ends
when each client has what it must get, and nothing else before it is closed.
"""

from __future__ import annotations

import argparse
import selectors
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from penstock.testing.maze import MAX_BATCH, MazeLoad, first_difference, generate

READ_BYTES = 1 << 18
# The server may be busy with others; the well-known tester waits as long.
TIMEOUT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class MazeRun:
    """How a run went. ``wrong`` says what the first few clients got wrong."""

    events: int
    notifications: int
    seconds: float
    wrong: list[str]

    @property
    def events_per_s(self) -> float:
        return self.events / self.seconds


def run(
    load: MazeLoad,
    event_port: int,
    client_port: int,
    *,
    host: str = "127.0.0.1",
    timeout_s: float = TIMEOUT_S,
    strict_end: bool = True,
) -> MazeRun:
    """Send a load and hear all clients out.

    The clock runs from the first event sent to the last notification received. With
    ``strict_end`` clients then end their side and read on until they are closed; a
    server that does not close them then wants it False.
    """
    with ExitStack() as stack:
        source = stack.enter_context(_connect(host, event_port, timeout_s))
        clients = {
            client: stack.enter_context(_connect(host, client_port, timeout_s))
            for client in load.clients
        }
        for client, connection in clients.items():
            connection.sendall(b"%d\n" % client)
        got = {client: bytearray() for client in clients}
        start = time.perf_counter()
        _exchange(load, source, clients, got, timeout_s)
        seconds = time.perf_counter() - start
        if strict_end:
            _read_to_the_end(clients, got)
    differences = (
        first_difference(client, expected, bytes(got[client]))
        for client, expected in load.expected.items()
    )
    return MazeRun(
        events=load.events,
        notifications=load.notifications,
        seconds=seconds,
        wrong=[text for text in differences if text is not None][:5],
    )


def measure(*, event_port: int, client_port: int, events: int, clients: int) -> float:
    """The seconds that a run of the usual load takes; asserts that all came right."""
    done = run(generate(666, events, clients), event_port, client_port)
    assert not done.wrong, done.wrong
    return done.seconds


def _connect(host: str, port: int, timeout_s: float) -> socket.socket:
    connection = socket.create_connection((host, port), timeout=timeout_s)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _exchange(
    load: MazeLoad,
    source: socket.socket,
    clients: dict[int, socket.socket],
    got: dict[int, bytearray],
    timeout_s: float,
) -> None:
    """Send all events and read meanwhile, until all is there or nothing moves."""
    unsent = memoryview(b"".join(load.chunks))
    waiting = {client for client, lines in load.expected.items() if lines}
    with selectors.DefaultSelector() as selector:
        source.setblocking(False)
        selector.register(source, selectors.EVENT_WRITE)
        for client, connection in clients.items():
            connection.setblocking(False)
            selector.register(connection, selectors.EVENT_READ, client)
        while unsent or waiting:
            ready = selector.select(timeout_s)
            if not ready:
                return
            for key, _ in ready:
                if key.data is None:
                    unsent = unsent[source.send(unsent[:READ_BYTES]) :]
                    if not unsent:
                        selector.unregister(source)
                        source.shutdown(socket.SHUT_WR)
                    continue
                client = key.data
                data = clients[client].recv(READ_BYTES)
                if not data:
                    selector.unregister(clients[client])
                    waiting.discard(client)
                got[client] += data
                if len(got[client]) >= len(load.expected[client]):
                    waiting.discard(client)


def _read_to_the_end(
    clients: dict[int, socket.socket], got: dict[int, bytearray]
) -> None:
    for client, connection in clients.items():
        connection.settimeout(TIMEOUT_S)
        try:
            connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(READ_BYTES):
                got[client] += data
        except OSError:
            continue  # closed by the server: what was read is compared all the same


def main(arguments: Sequence[str] | None = None) -> int:
    options = _arguments(arguments)
    load = generate(
        options.seed,
        options.events,
        options.clients,
        options.users,
        batch=options.batch,
        line_end=b"\r\n" if options.crlf else b"\n",
    )
    done = run(
        load,
        options.event_port,
        options.client_port,
        host=options.host,
        strict_end=not options.lenient_end,
    )
    for text in done.wrong:
        sys.stdout.write(f"{text}\n")
    sys.stdout.write(
        f"{done.events} events, {done.notifications} notifications in "
        f"{done.seconds:.2f} s: {done.events_per_s:.0f} events/s, "
        f"{'wrong' if done.wrong else 'all as expected'}\n"
    )
    return 1 if done.wrong else 0


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--event-port", type=int, default=9090)
    parser.add_argument("--client-port", type=int, default=9099)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--users", type=int, help="default: ten for each client")
    parser.add_argument("--batch", type=int, default=MAX_BATCH)
    parser.add_argument("--seed", type=int, default=666)
    parser.add_argument("--crlf", action="store_true", help="end lines with CRLF")
    parser.add_argument(
        "--lenient-end",
        action="store_true",
        help="for servers that do not close a client that ends its side",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
