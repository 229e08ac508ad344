"""HTTP: what publishing costs the server beside the line gateway, and how long a page
of a long topic takes.

Publishing: one connection, raw sockets, requests made beforehand, 4 000 events in
flight, every event confirmed when it is on disk. Contenders take turns at one server.
Pages: a hundred events from random places of a topic of ten million, over one
connection, also after a restart of the server.
"""

from __future__ import annotations

import http.client
import random
import select
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

from bench.peers import penstock_server
from bench.peers.adapter import Dialogue, Place, payload
from bench.peers.processes import Server, cpu_s
from bench.rounds import Row, Sample, Settings, payloads, scratch, take_turns
from penstock.log import Columns, Log, TopicOptions

PUBLISH, PAGES = "http publish", "http pages"
SIZES = {"100 B": 100, "1 KiB": 1024}
# Events of one request, and requests on their way.
BLOCK, IN_FLIGHT = 1000, 4
SECONDS, QUICK_SECONDS = 3.0, 0.5
# Different blocks; after the last comes the first.
BLOCKS = 50
STALL_S = 20.0
LINE = "line gateway"
AT_MOST = 2.0
# A body of this length is never sent whole.
ENDLESS = 10**15

LONG_TOPIC, BATCH = 10_000_000, 1000
PAGE_EVENTS, ASKED = 100, 300
PAGE_LIMIT_MS = 100
START_MS = 1_700_000_000_000


def run(settings: Settings) -> list[Row]:
    from bench import http_beside  # it uses what is here

    return [*_publishing(settings), *http_beside.run(settings), *_pages(settings)]


# Publishing


class Publisher:
    """One connection; blocks of requests, and how confirmations are counted."""

    mark = b"\n"

    def __init__(self, place: Place, token: str, size: int) -> None:
        self.place = place
        self.token = token
        self.blocks = [self._block(number, size) for number in range(BLOCKS)]
        self.sock = self._connected()
        self.sock.setblocking(False)
        self._next = 0

    def run(self, seconds: float, size: int) -> Sample:
        """Keep blocks in flight for a while."""
        before_s, start_s = cpu_s(self.place.pids), time.perf_counter()
        events = self._drive(start_s + seconds)
        return Sample(
            events=events,
            bytes=events * size,
            seconds=time.perf_counter() - start_s,
            cpu_s=cpu_s(self.place.pids) - before_s,
        )

    def _drive(self, until_s: float) -> int:
        sent = confirmed = 0
        pending = memoryview(b"")
        poll = select.poll()
        while True:
            if time.perf_counter() < until_s:
                if not pending and sent - confirmed // BLOCK < IN_FLIGHT:
                    pending = memoryview(self.blocks[self._next % BLOCKS])
                    self._next += 1
                    sent += 1
            elif confirmed >= sent * BLOCK:
                return confirmed
            poll.register(self.sock, select.POLLIN | (select.POLLOUT if pending else 0))
            ready = poll.poll(STALL_S * 1000)
            if not ready:
                raise TimeoutError(f"{sent * BLOCK} sent, {confirmed} confirmed")
            for _, event in ready:
                if event & select.POLLOUT:
                    pending = pending[self.sock.send(pending) :]
                if event & ~select.POLLOUT:
                    data = self.sock.recv(1 << 18)
                    if not data or b'"error"' in data or b"error:" in data:
                        raise ConnectionError(data[:300].decode(errors="replace"))
                    confirmed += data.count(self.mark)

    def _block(self, number: int, size: int) -> bytes:
        return b"".join(
            self._line(number * BLOCK + index, size) for index in range(BLOCK)
        )

    def _line(self, number: int, size: int) -> bytes:
        raise NotImplementedError

    def _connected(self) -> socket.socket:
        raise NotImplementedError


class LinePublisher(Publisher):
    def _line(self, number: int, size: int) -> bytes:
        return b'pub line {"id":"%d","msg":"%b"}\r\n' % (number, payload(number, size))

    def _connected(self) -> socket.socket:
        dialogue = Dialogue(self.place.ports["line"])
        dialogue.ask(b"", b"message_broker\r\n")
        dialogue.ask(b"confirm on\r\n", b"confirm on\r\n")
        return dialogue.sock


class StreamPublisher(Publisher):
    """One request whose body has no end; answers come meanwhile."""

    mark = b"}"

    def _line(self, number: int, size: int) -> bytes:
        return b'{"id":"%d","payload":"%b"}\n' % (number, payload(number, size))

    def _connected(self) -> socket.socket:
        dialogue = Dialogue(self.place.ports["http"])
        dialogue.ask(self._head(ENDLESS), b"\r\n\r\n")
        return dialogue.sock

    def _head(self, length: int) -> bytes:
        return (
            f"POST /v1/topics/http/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {self.token}\r\n"
            f"Content-Type: application/x-ndjson\r\nContent-Length: {length}\r\n\r\n"
        ).encode()


class PlainStreamPublisher(StreamPublisher):
    """Events that have a payload and nothing else."""

    def _line(self, number: int, size: int) -> bytes:
        return b'{"payload":"%b"}\n' % payload(number, size)


class RequestPublisher(StreamPublisher):
    """A request for every block, each sent while others wait for their answer."""

    def _block(self, number: int, size: int) -> bytes:
        lines = super()._block(number, size)
        return self._head(len(lines)) + lines

    def _connected(self) -> socket.socket:
        return Dialogue(self.place.ports["http"]).sock


CONTENDERS: dict[str, type[Publisher]] = {
    LINE: LinePublisher,
    "HTTP, requests of 1 000 lines": RequestPublisher,
    "HTTP, an endless request": StreamPublisher,
    "HTTP, an endless request, payloads only": PlainStreamPublisher,
}


def _publishing(settings: Settings) -> Iterator[Row]:
    seconds = QUICK_SECONDS if settings.quick else SECONDS
    with _served(settings) as (server, token):
        for case, size in SIZES.items():
            publishers = {
                name: make(server.place, token, size)
                for name, make in CONTENDERS.items()
            }
            samples = take_turns(
                {
                    name: partial(one.run, seconds, size)
                    for name, one in publishers.items()
                },
                settings.rounds,
            )
            for one in publishers.values():
                one.sock.close()
            for name, sample in samples.items():
                yield _publish_row(case, name, sample, samples[LINE])


def _publish_row(case: str, name: str, sample: Sample, line: Sample) -> Row:
    ratio = sample.cpu_s_per_million / line.cpu_s_per_million
    is_line = name == LINE
    return Row(
        benchmark=PUBLISH,
        case=case,
        contender=name,
        rate=f"{sample.events_per_s:.0f} events/s",
        cpu_s_per_million=sample.cpu_s_per_million,
        ratio="" if is_line else f"{ratio:.2f}x of the CPU of the {LINE}",
        target="" if is_line else f"at most {AT_MOST:g}x",
        met=None if is_line else ratio <= AT_MOST,
    )


# Pages


def _pages(settings: Settings) -> Iterator[Row]:
    events = settings.scaled(LONG_TOPIC)
    with scratch(settings.directory) as folder:
        (folder / "data").mkdir()
        _write(folder / "data", events)
        for when in ("after a restart", "again"):
            with serving(folder) as (server, token):
                yield from _ask(server, token, events, when)


def _write(folder: Path, events: int) -> None:
    data = [b'{"text":"%b"}' % one for one in payloads(BATCH, 80)]
    with Log.open(folder) as log:
        log.create_topic("long", TopicOptions(durability="os"))
        for number in range(events // BATCH):
            log.append("long", Columns(data, START_MS + number))
            log.commit()


def _ask(server: Server, token: str, events: int, when: str) -> Iterator[Row]:
    rng = random.Random(7)
    topic_filters: dict[str, Callable[[], dict[str, int]]] = {
        "by offset": lambda: {"offset": rng.randrange(events)},
        "by time": lambda: {"timestamp": START_MS + rng.randrange(events // BATCH)},
        "the last": lambda: {"tail": PAGE_EVENTS},
    }
    client = http.client.HTTPConnection("127.0.0.1", server.place.ports["http"])
    for what, topic_filter in topic_filters.items():
        times_ms, before_s = [], cpu_s(server.place.pids)
        for _ in range(ASKED):
            query = urlencode({"limit": PAGE_EVENTS, **topic_filter()})
            start_s = time.perf_counter()
            client.request(
                "GET",
                f"/v1/topics/long/events?{query}",
                headers={"Authorization": f"Bearer {token}"},
            )
            answer = client.getresponse()
            body = answer.read()
            times_ms.append((time.perf_counter() - start_s) * 1000)
            assert answer.status == 200, body
        worst_ms = max(times_ms)
        cpu_ms = (cpu_s(server.place.pids) - before_s) * 1000 / ASKED
        cuts = statistics.quantiles(times_ms, n=100)
        yield Row(
            benchmark=PAGES,
            case=f"{events / 1e6:g} M events, {when}",
            contender=f"{PAGE_EVENTS} events {what}",
            rate=f"p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms, "
            f"worst {worst_ms:.1f} ms, "
            f"{cpu_ms:.1f} ms of CPU",
            target=f"under {PAGE_LIMIT_MS} ms",
            met=worst_ms < PAGE_LIMIT_MS,
        )
    client.close()


@contextmanager
def _served(settings: Settings) -> Iterator[tuple[Server, str]]:
    with scratch(settings.directory) as folder, serving(folder) as served:
        yield served


@contextmanager
def serving(folder: Path, *, http: bool = True) -> Iterator[tuple[Server, str]]:
    """A server with its data below the folder, and its admin token."""
    (folder / "ready.json").unlink(missing_ok=True)
    server = penstock_server.start(folder, "sync", http=http)
    token = folder / "data" / "http-admin-token"
    try:
        yield server, token.read_text().strip() if http else ""
    finally:
        server.stop()
