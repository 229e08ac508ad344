"""What HTTP costs whoever does not use it: the line gateway with HTTP beside it.

The line gateway publishes as fast as it can, confirmed, as in ``http publish``: on a
server without HTTP, on one that listens, and on one whose HTTP is used meanwhile at a
steady rate. What HTTP itself needs at that rate is measured with nothing else going on,
and taken off. Then single events, one after the other: how long a confirmation takes.
"""

from __future__ import annotations

import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

from bench.http import LINE, QUICK_SECONDS, SECONDS, LinePublisher, serving
from bench.peers.adapter import Dialogue, Place, payload
from bench.peers.processes import Server, cpu_s
from bench.rounds import Row, Settings, scratch

NAME = "http beside"
SIZE = 100
# What HTTP is asked to do meanwhile: so many requests a second with so many lines.
REQUESTS_S, LINES = 20, 250
AT_MOST = 1.1
# Confirmations one after the other.
ALONE = 300

ROUNDS = 7

Meanwhile = Callable[[], AbstractContextManager[None]]


class Turn(NamedTuple):
    """What one turn of the line gateway was like; CPU of the server for one event."""

    events_s: float
    cpu_us: float
    p50_ms: float
    p99_ms: float


def run(settings: Settings) -> Iterator[Row]:
    with (
        scratch(settings.directory) as bare_folder,
        scratch(settings.directory) as folder,
        serving(bare_folder, http=False) as (bare, _),
        serving(folder) as (server, token),
    ):
        users: dict[str, tuple[Server, Meanwhile]] = {
            "without HTTP": (bare, nullcontext),
            "HTTP listens": (server, nullcontext),
            f"HTTP publishes {REQUESTS_S * LINES} events/s": (
                server,
                lambda: _publishing(server.place, token),
            ),
            "the same, followed by SSE": (
                server,
                lambda: _followed(server.place, token),
            ),
        }
        yield from _table(settings, users)


def _table(
    settings: Settings, users: dict[str, tuple[Server, Meanwhile]]
) -> Iterator[Row]:
    seconds = QUICK_SECONDS if settings.quick else SECONDS
    costs = {name: _cost(*one, seconds) for name, one in users.items()}
    lines = {name: LinePublisher(one[0].place, "", SIZE) for name, one in users.items()}
    turns = {
        name: _contender(lines[name], meanwhile, seconds, costs[name])
        for name, (_, meanwhile) in users.items()
    }
    taken: dict[str, list[Turn]] = {name: [turn()] for name, turn in turns.items()}
    for turns_ in taken.values():
        turns_.clear()  # the first is forgotten
    for _ in range(ROUNDS):
        for name, turn in turns.items():
            taken[name].append(turn())
    for line in lines.values():
        line.sock.close()
    alone = _medians(taken[next(iter(users))])
    for name, turns_ in taken.items():
        found = _medians(turns_)
        ratio, first = found.cpu_us / alone.cpu_us, found == alone
        yield Row(
            benchmark=NAME,
            case=f"{LINE}, {SIZE} B",
            contender=name,
            rate=f"{found.events_s:.0f} events/s; one alone confirmed in p50 "
            f"{found.p50_ms:.2f} ms, p99 {found.p99_ms:.2f} ms",
            cpu_s_per_million=found.cpu_us,
            ratio="" if first else f"{ratio:.2f}x of the CPU without",
            target="" if first else f"at most {AT_MOST:g}x",
            met=None if first else ratio <= AT_MOST,
        )


def _medians(turns: list[Turn]) -> Turn:
    """Each by itself: turns are equally long, so none of them is the middle one."""
    return Turn(*map(statistics.median, zip(*turns, strict=True)))


def _cost(server: Server, meanwhile: Meanwhile, seconds: float) -> float:
    """Cores that a server uses for what goes on beside the line gateway."""
    with meanwhile():
        before_s, start_s = cpu_s(server.place.pids), time.perf_counter()
        time.sleep(seconds)
        return (cpu_s(server.place.pids) - before_s) / (time.perf_counter() - start_s)


def _contender(
    line: LinePublisher, meanwhile: Meanwhile, seconds: float, cost: float
) -> Callable[[], Turn]:
    def turn() -> Turn:
        with meanwhile():
            sample = line.run(seconds, SIZE)
            times_ms = sorted(_confirmed_ms(line.place))
        own_s = sample.cpu_s - cost * sample.seconds
        return Turn(
            sample.events_per_s,
            own_s * 1e6 / sample.events,
            statistics.median(times_ms),
            times_ms[len(times_ms) * 99 // 100],
        )

    return turn


def _confirmed_ms(place: Place) -> Iterator[float]:
    line = Dialogue(place.ports["line"])
    line.ask(b"", b"message_broker\r\n")
    line.ask(b"confirm on\r\n", b"confirm on\r\n")
    for number in range(ALONE):
        start_s = time.perf_counter()
        line.ask(b'pub one {"id":"%d","msg":"x"}\r\n' % number, b"\n")
        yield (time.perf_counter() - start_s) * 1000
    line.sock.close()


@contextmanager
def _publishing(place: Place, token: str) -> Iterator[None]:
    """Requests of some lines at a steady rate by a thread, meanwhile."""
    body = b"".join(
        b'{"id":"%d","payload":"%b"}\n' % (number, payload(number, SIZE))
        for number in range(LINES)
    )
    head = (
        f"POST /v1/topics/steady/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/x-ndjson\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    over = threading.Event()
    client = Dialogue(place.ports["http"])
    client.ask(head + body, b'"id"', LINES)  # the topic is there from now on

    def publish() -> None:
        while not over.wait(1 / REQUESTS_S):
            client.ask(head + body, b'"id"', LINES)
        client.sock.close()

    with _thread(publish, over):
        yield


@contextmanager
def _followed(place: Place, token: str) -> Iterator[None]:
    """The same, and somebody who reads it all as server-sent events."""
    with _publishing(place, token):
        reader = Dialogue(place.ports["http"])
        reader.ask(
            f"GET /v1/topics/steady/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {token}\r\n\r\n".encode(),
            b"\ndata: {",
        )
        over = threading.Event()

        def read() -> None:
            while not over.is_set():
                if not reader.sock.recv(1 << 18) and not over.is_set():
                    raise ConnectionError("the stream ended")

        # It ends when it is told, not with the next event.
        with _thread(read, over, lambda: reader.sock.shutdown(socket.SHUT_RDWR)):
            yield
        reader.sock.close()


@contextmanager
def _thread(
    work: Callable[[], None],
    over: threading.Event,
    wake: Callable[[], None] = lambda: None,
) -> Iterator[None]:
    """Work meanwhile; what it raises comes out at the end."""
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # told to whoever waits
            failed.append(error)

    thread = threading.Thread(target=guarded)
    thread.start()
    try:
        yield
    finally:
        over.set()
        wake()
        thread.join()
    if failed:
        raise failed[0]
