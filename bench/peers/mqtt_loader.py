"""The client of the MQTT cells: one loop in one process, the same for every broker.

A :class:`Task` names publishers, subscribers and what is in flight. The harness writes
it as a JSON line, then ``go`` as often as it likes, and reads one line per answer, as
it does with the other loader.

pipelined   at most ``in_flight`` messages are sent and not yet delivered to everybody
            (QoS 1 and 2: nor acknowledged); publishers take turns, a few messages each
alone       every connection publishes to itself, and has one message under way
idle        connections that subscribe and then only stay
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import select
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.peers import mqtt_bytes as mqtt
from bench.peers.adapter import Dialogue, Place, Refused, Requests, payload
from bench.peers.loader import STALL_S, Link
from bench.peers.processes import cpu_s
from bench.rounds import Sample

BLOCK_BYTES = 12_000_000
# Packet ids are given once each.
BLOCK_EVENTS = 60_000
FEW_EVENTS = 1000
# How many are in flight at first; it grows with all that is finished, over all runs. So
# a slow broker ends in time too.
FIRST, FIRST_TO_MANY = 256, 4
LEAST_SHARE = 4
CONNECT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Task:
    place: Place
    shape: str  # pipelined, alone, idle
    qos: int
    payload_bytes: int
    publishers: int
    subscribers: int
    in_flight: int
    # Sessions of subscribers outlive their connections.
    kept: bool = False
    seconds: float = 1.0


class Voice:
    """A connection that publishes, listens, or both."""

    def __init__(self, task: Task, number: int, topic: str, *, listens: bool) -> None:
        dialogue = Dialogue(task.place.ports["mqtt"])
        name = f"{task.place.prefix}{'s' if listens else 'p'}{number}"
        clean = not (task.kept and listens)
        dialogue.ask(mqtt.connect(name, clean=clean), mqtt.CONNACK + b"\x00\x00")
        if listens:
            granted = mqtt.SUBACK + b"\x00\x01" + bytes((task.qos,))
            dialogue.ask(mqtt.subscribe(topic, task.qos), granted)
        self.link = Link(dialogue.sock)
        self.ear = mqtt.Ear(topic, task.payload_bytes, task.qos)
        self.sent = 0
        self.since = 0.0


class Loader:
    """Connections and bytes of one task; every run goes on where it was."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._memory = resident_bytes(task.place.pids)
        start, before = time.perf_counter(), cpu_s(task.place.pids)
        self.subscribers: list[Voice] = []
        self.publishers: list[Voice] = []
        for number in range(task.subscribers):
            topic = f"B/{number}" if task.shape != "pipelined" else "B/0"
            self.subscribers.append(Voice(task, number, topic, listens=True))
            if time.perf_counter() - start > CONNECT_S:
                raise Refused(f"only {number + 1} connections in {CONNECT_S:.0f} s")
        if task.shape == "pipelined":
            self.publishers = [
                Voice(task, number, "B/0", listens=False)
                for number in range(task.publishers)
            ]
        self._connect = time.perf_counter() - start, cpu_s(task.place.pids) - before
        self.voices = {
            voice.link.sock.fileno(): voice
            for voice in self.subscribers + self.publishers
        }
        self.poll = select.epoll()
        for number in self.voices:
            self.poll.register(number, select.EPOLLIN)
        self.writing: set[int] = set()
        self.delivered = self.done = self.released = 0
        self._finished = 0
        self.requests = self._all_requests()

    def run(self) -> Sample:
        task = self.task
        if task.shape == "idle":
            return self._idle()
        before = cpu_s(task.place.pids), time.process_time()
        start = time.perf_counter()
        if task.shape == "alone":
            messages, facts = self._alone()
        else:
            messages, facts = self._pipelined()
        seconds = time.perf_counter() - start
        facts["client_cpu_s"] = time.process_time() - before[1]
        return Sample(
            events=messages,
            bytes=messages * task.payload_bytes,
            seconds=seconds,
            cpu_s=cpu_s(task.place.pids) - before[0],
            facts=facts,
        )

    def _idle(self) -> Sample:
        grown = resident_bytes(self.task.place.pids) - self._memory
        count = len(self.subscribers)
        seconds, cpu = self._connect
        facts = {"bytes_each": grown / count}
        return Sample(events=count, bytes=0, seconds=seconds, cpu_s=cpu, facts=facts)

    def _pipelined(self) -> tuple[int, dict[str, float]]:
        task, fan, qos = self.task, len(self.subscribers), self.task.qos
        requests = self.requests[0]
        turns = self._turns()
        each = max(1, task.in_flight // len(self.publishers))
        ramp = self._finished + (FIRST_TO_MANY if fan > 1 else FIRST)
        self.delivered = self.done = self.released = 0
        sent = 0
        deadline = time.perf_counter() + task.seconds
        while True:
            finished = self.delivered // fan
            if qos:
                finished = min(finished, self.done)
            if time.perf_counter() < deadline:
                window = min(task.in_flight, ramp + finished)
                room = finished + window - sent
                while room > 0 and (room * LEAST_SHARE >= window or fan == 1 < each):
                    voice = next(turns)
                    if voice.link.pending:
                        break
                    amount = min(each, room)
                    pieces = requests.between(voice.sent, voice.sent + amount)
                    voice.link.write(pieces)
                    self._watch(voice)
                    voice.sent += amount
                    sent += amount
                    room -= amount
            elif finished == sent and (qos < 2 or self.released == self.delivered):
                self._finished += sent
                return self.delivered, {"published": sent}
            self._listen(f"{sent} sent")

    def _turns(self) -> Iterator[Voice]:
        while True:
            yield from self.publishers

    def _alone(self) -> tuple[int, dict[str, float]]:
        """Every connection sends its next message when the last one is all over."""
        requests = dict(zip(self.subscribers, self.requests, strict=True))
        qos, times = self.task.qos, []
        messages = ended = 0
        now = time.perf_counter()
        deadline = now + self.task.seconds
        waiting = dict.fromkeys(self.subscribers)
        for voice in waiting:
            self._send_next(voice, requests[voice], now)
        while waiting:
            touched = self._listen(f"{messages} done, {ended} ended")
            now = time.perf_counter()
            for voice in touched:
                if voice not in waiting or not over(voice, qos):
                    continue
                times.append(now - voice.since)
                messages += 1
                if now < deadline:
                    self._send_next(voice, requests[voice], now)
                else:
                    del waiting[voice]
                    ended += 1
        cuts = statistics.quantiles(times, n=100)
        return messages, {"p50_us": cuts[49] * 1e6, "p99_us": cuts[98] * 1e6}

    def _send_next(self, voice: Voice, requests: Requests, now: float) -> None:
        voice.since = now
        voice.link.write(requests.between(voice.sent, voice.sent + 1))
        voice.sent += 1

    def _listen(self, how_far: str) -> list[Voice]:
        """Take in what has come, and answer it; whom it came to."""
        ready = self.poll.poll(STALL_S)
        if not ready:
            raise Refused(f"silent: {how_far}, {self.delivered} got, {self.done} acked")
        touched = []
        for number, event in ready:
            voice = self.voices[number]
            if event & select.EPOLLOUT:
                voice.link.flush()
            if event & ~select.EPOLLOUT:
                heard = voice.ear.heard
                before = heard.delivered, heard.done, heard.released
                if answer := voice.ear.feed(voice.link.read()):
                    voice.link.write([answer])
                self.delivered += heard.delivered - before[0]
                self.done += heard.done - before[1]
                self.released += heard.released - before[2]
                touched.append(voice)
            self._watch(voice)
        return touched

    def _watch(self, voice: Voice) -> None:
        """Ask for writability exactly while there is something to write."""
        number = voice.link.sock.fileno()
        if bool(voice.link.pending) == (number in self.writing):
            return
        if voice.link.pending:
            self.writing.add(number)
            self.poll.modify(number, select.EPOLLIN | select.EPOLLOUT)
        else:
            self.writing.discard(number)
            self.poll.modify(number, select.EPOLLIN)

    def _all_requests(self) -> list[Requests]:
        """One block for all publishers, or one for each connection of its own."""
        match self.task.shape:
            case "pipelined":
                return [self._requests("B/0", BLOCK_EVENTS)]
            case "alone":
                count = len(self.subscribers)
                return [self._requests(f"B/{n}", FEW_EVENTS) for n in range(count)]
            case _:
                return []

    def _requests(self, topic: str, most: int) -> Requests:
        task = self.task
        count = min(most, BLOCK_BYTES // task.payload_bytes)
        return Requests(
            mqtt.publish(topic, payload(n, task.payload_bytes), task.qos, n + 1)
            for n in range(count)
        )


def over(voice: Voice, qos: int) -> bool:
    heard = voice.ear.heard
    return (
        heard.delivered == voice.sent
        and (qos == 0 or heard.done == voice.sent)
        and (qos < 2 or heard.released == voice.sent)
    )


def resident_bytes(pids: list[int]) -> int:
    pages = (Path(f"/proc/{pid}/statm").read_text().split()[1] for pid in pids)
    return sum(map(int, pages)) * resource.getpagesize()


def main() -> None:
    """Serve the harness until it closes the pipe."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    words = iter(sys.stdin)
    try:
        topic_filter = json.loads(next(words))
        loader = Loader(
            Task(**{**topic_filter, "place": Place(**topic_filter["place"])})
        )
        _say({"ready": os.getpid()})
        for _ in words:
            _say(dataclasses.asdict(loader.run()))
    except Exception as error:
        _say({"error": f"{type(error).__name__}: {error}"})


def _say(answer: dict[str, object]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
