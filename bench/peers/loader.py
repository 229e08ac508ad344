"""The client: one loop in one process that is the same for every system.

All request bytes are made before the clock starts and lie in one block, so that
sending the next thousand events is one slice and one system call. Replies are not
parsed but counted. At most ``in_flight`` events are on their way: sent and not yet
confirmed or, where there are subscribers, not yet delivered to all of them.

Runs as a child of the harness, which writes one JSON line per filter (a
:class:`Task` first, then ``go`` as often as it likes) and reads one per answer.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import math
import os
import resource
import select
import socket
import statistics
import sys
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from bench.peers.adapter import Adapter, Consumer, Place, Refused, Requests, payload
from bench.peers.processes import cpu_s
from bench.rounds import Sample

READ_BYTES = 1 << 18
# A server that says nothing for so long will say nothing any more.
STALL_S = 20.0
# Enough different events that no system profits from their repetition, few enough
# to be made in a moment.
BLOCK_BYTES = 24_000_000
BLOCK_EVENTS = 100_000
# How many are in flight at first; it grows with what is finished. So a slow system
# ends in time too, and a fast one is at its limit after a few milliseconds.
FIRST, FIRST_TO_MANY = 256, 16
# What a subscriber of one topic of many may have under way at least.
LEAST_WINDOW = 16
# Writes are large: nothing is sent before a quarter of the window is free.
LEAST_SHARE = 4


@dataclass(frozen=True, kw_only=True)
class Task:
    """One workload on one system."""

    adapter: str  # module:class
    place: Place
    workload: str  # publish, latency, create, consume, each, fan-out
    payload_bytes: int
    in_flight: int
    topics: int = 1
    subscribers: int = 0
    # Whether readers of the fan-out answer what they get.
    acknowledged: bool = True
    seconds: float = 1.0
    # Ends a run before its time, if not 0.
    events: int = 0
    # How many different events there are.
    block_events: int = BLOCK_EVENTS


class Link:
    """A socket that never blocks, and the bytes it could not take yet."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.pending: deque[bytes | memoryview] = deque()
        sock.setblocking(False)

    def write(self, pieces: Iterable[bytes | memoryview]) -> None:
        self.pending.extend(pieces)
        self.flush()

    def flush(self) -> None:
        pending = self.pending
        while pending:
            piece = pending[0]
            try:
                taken = self.sock.send(piece)
            except BlockingIOError:
                return
            if taken < len(piece):
                pending[0] = memoryview(piece)[taken:]
                return
            pending.popleft()

    def read(self) -> bytes:
        try:
            data = self.sock.recv(READ_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            raise Refused("the server closed the connection")
        return data


class Loader:
    """Connections and request bytes of one task; every run goes on where it was."""

    def __init__(self, task: Task) -> None:
        self.task = task
        module, _, name = task.adapter.partition(":")
        self.adapter: Adapter = getattr(importlib.import_module(module), name)(
            task.place
        )
        self.adapter.prepare(task.topics)
        self.requests = self._requests()
        # Before the publisher: a reader must not miss the first event.
        self.readers = [(consumer, Link(consumer.sock)) for consumer in self._readers()]
        self.publisher = Link(self.adapter.publisher())
        self.first = 0
        for consumer, link in self.readers:
            if words := consumer.begin():
                link.write([words])

    def run(self) -> Sample:
        before = cpu_s(self.task.place.pids), time.process_time()
        start = time.perf_counter()
        match self.task.workload:
            case "latency":
                events, facts = self._one_at_a_time()
            case _:
                events, facts = self._many_at_a_time()
        seconds = time.perf_counter() - start
        facts["client_cpu_s"] = time.process_time() - before[1]
        server_s = cpu_s(self.task.place.pids) - before[0]
        return Sample(
            events=events,
            bytes=events * self.task.payload_bytes,
            seconds=seconds,
            cpu_s=server_s,
            facts=facts,
        )

    def _requests(self) -> Requests:
        task = self.task
        count = min(task.block_events, BLOCK_BYTES // task.payload_bytes)
        count -= count % math.lcm(task.topics, self.adapter.batch)
        # Every event makes a topic of its own, or they go round.
        topics = count if task.workload == "create" else task.topics
        return Requests(
            self.adapter.request(
                number, number % topics, payload(number, task.payload_bytes)
            )
            for number in range(count)
        )

    def _readers(self) -> list[Consumer]:
        task = self.task
        match task.workload:
            case "consume":
                return [self.adapter.consumer(task.in_flight)]
            case "each":
                window = max(task.in_flight // task.topics, LEAST_WINDOW)
                return [
                    self.adapter.consumer(window, topic) for topic in range(task.topics)
                ]
            case "fan-out":
                return [
                    self.adapter.reader(
                        number, task.in_flight, acknowledged=task.acknowledged
                    )
                    for number in range(task.subscribers)
                ]
            case _:
                return []

    def _one_at_a_time(self) -> tuple[int, dict[str, float]]:
        sock, confirmed = self.publisher.sock, self.adapter.confirmed
        sock.settimeout(STALL_S)
        times: list[float] = []
        now = time.perf_counter()
        deadline = now + self.task.seconds
        # A median needs two.
        while now < deadline or len(times) < 2:
            number = self.first + len(times)
            for piece in self.requests.between(number, number + 1):
                sock.sendall(piece)
            while not confirmed(sock.recv(READ_BYTES)):
                pass
            then, now = now, time.perf_counter()
            times.append(now - then)
        self.first += len(times)
        cuts = statistics.quantiles(times, n=100)
        return len(times), {"p50_us": cuts[49] * 1e6, "p99_us": cuts[98] * 1e6}

    def _many_at_a_time(self) -> tuple[int, dict[str, float]]:
        sent, delivered = self._drive()
        self.first += sent
        if self.task.acknowledged and self.readers:
            for _, link in self.readers:
                link.sock.settimeout(STALL_S)
            self.adapter.settle([consumer for consumer, _ in self.readers])
            for _, link in self.readers:
                link.sock.setblocking(False)
        if self.task.workload == "fan-out":
            return delivered, {"published": sent}
        return sent, {}

    def _drive(self) -> tuple[int, int]:
        """Publish until time is up, then wait for the rest: sent, delivered."""
        publisher, confirmed = self.publisher, self.adapter.confirmed
        in_flight, batch = self.task.in_flight, self.adapter.batch
        # How often an event is delivered.
        fan = len(self.readers) // (
            self.task.topics if self.task.workload == "each" else 1
        )
        most = self.task.events or sys.maxsize
        ramp = max(FIRST_TO_MANY if fan > 1 else FIRST, batch)
        links = {link.sock.fileno(): (c, link) for c, link in self.readers}
        own = publisher.sock.fileno()
        poll = select.epoll()
        poll.register(own, select.EPOLLIN)
        for number in links:
            poll.register(number, select.EPOLLIN)
        writing: set[int] = set()
        sent = done = delivered = 0
        deadline = time.perf_counter() + self.task.seconds
        while True:
            finished = min(done, delivered // fan) if fan else done
            if sent < most and time.perf_counter() < deadline:
                window = min(in_flight, ramp + finished)
                room = min(finished + window, most) - sent
                room -= room % batch
                enough = room * LEAST_SHARE >= window or sent + room == most
                if room > 0 and enough and not publisher.pending:
                    first = self.first + sent
                    publisher.write(self.requests.between(first, first + room))
                    sent += room
            elif finished == sent and not writing:
                break
            self._watch(poll, publisher, own, writing)
            ready = poll.poll(STALL_S)
            if not ready:
                raise Refused(f"silent: {sent} sent, {done} confirmed, {delivered} got")
            for number, event in ready:
                if number == own:
                    if event & select.EPOLLOUT:
                        publisher.flush()
                    if event & ~select.EPOLLOUT:
                        done += confirmed(publisher.read())
                    continue
                consumer, link = links[number]
                if event & select.EPOLLOUT:
                    link.flush()
                if event & ~select.EPOLLOUT:
                    got, answer = consumer.feed(link.read())
                    delivered += got
                    if answer:
                        link.write(answer)
                if link.pending or number in writing:
                    self._watch(poll, link, number, writing)
        poll.close()
        return sent, delivered

    @staticmethod
    def _watch(poll: select.epoll, link: Link, number: int, writing: set[int]) -> None:
        """Ask for writability exactly while there is something to write."""
        if bool(link.pending) == (number in writing):
            return
        if link.pending:
            writing.add(number)
            poll.modify(number, select.EPOLLIN | select.EPOLLOUT)
        else:
            writing.discard(number)
            poll.modify(number, select.EPOLLIN)


def main() -> None:
    """Serve the harness until it closes the pipe."""
    _allow_files()
    words = iter(sys.stdin)
    loader = None
    try:
        topic_filter = json.loads(next(words))
        loader = Loader(
            Task(**{**topic_filter, "place": Place(**topic_filter["place"])})
        )
        _say({"ready": os.getpid()})
        for _ in words:
            loader.adapter.reset()
            _say(dataclasses.asdict(loader.run()))
    except Exception as error:
        _say({"error": f"{type(error).__name__}: {error}"})
    finally:
        if loader is not None:
            loader.adapter.close()


def _say(answer: dict[str, object]) -> None:
    print(json.dumps(answer), flush=True)


def _allow_files() -> None:
    """A thousand connections need more files than some shells allow."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


if __name__ == "__main__":
    main()
