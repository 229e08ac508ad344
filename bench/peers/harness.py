"""Runs the contenders of a case in turns, each with a server and a client process."""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.peers.adapter import Refused
from bench.peers.field import CONTENDERS, Contender, Workload
from bench.peers.loader import BLOCK_EVENTS, Task
from bench.peers.processes import Missing, Server
from bench.rounds import Sample, Settings, scratch

ROOT = Path(__file__).resolve().parents[2]
LOADER = "bench.peers.loader"
# When no further case is begun; a case takes less than a minute.
LIMIT_S, QUICK_LIMIT_S = 1020.0, 300.0


@dataclass(kw_only=True)
class Bench:
    """One run: where, how long, and who could not take part and why."""

    settings: Settings
    deadline: float
    seconds: float
    rounds: int
    warm_ups: int
    block_events: int = BLOCK_EVENTS
    # Contender -> why it took no part at all.
    absent: dict[str, str] = field(default_factory=dict)
    # (contender, case) -> why it did not finish.
    failed: dict[tuple[str, str], str] = field(default_factory=dict)
    _shared: dict[str, Server] = field(default_factory=dict)
    _cases: int = 0

    @classmethod
    def of(cls, settings: Settings) -> Bench:
        if settings.quick:
            return cls(
                settings=settings,
                deadline=time.monotonic() + QUICK_LIMIT_S,
                seconds=0.25,
                rounds=settings.rounds,
                warm_ups=0,
                block_events=20_000,
            )
        return cls(
            settings=settings,
            deadline=time.monotonic() + LIMIT_S,
            seconds=0.6,
            rounds=settings.rounds,
            warm_ups=1,
        )

    @property
    def out_of_time(self) -> bool:
        return time.monotonic() > self.deadline

    def close(self) -> None:
        for server in self._shared.values():
            server.stop()

    def left_out(self, workload: Workload) -> dict[str, str]:
        """Contender -> why it does not take part in this."""
        reasons = dict(workload.without)
        if self.settings.quick and workload.topics + workload.subscribers > 1:
            for name, contender in CONTENDERS.items():
                if contender.shared and contender.takes_part(workload.kind):
                    reasons.setdefault(name, "too slow to prepare for a quick run")
        return reasons

    def case(
        self,
        title: str,
        workload: Workload,
        size: int,
        contenders: Mapping[str, Contender],
    ) -> dict[str, Sample]:
        """The median sample of everybody who finished a round."""
        self._cases += 1
        samples: dict[str, list[Sample]] = {}
        with ExitStack() as stack:
            clients = self._clients(stack, title, workload, size, contenders)
            for turn in range(-self.warm_ups, self.rounds):
                for name, client in list(clients.items()):
                    # Nobody shall pay for the dirty pages of the one before.
                    os.sync()
                    try:
                        sample = client.run()
                    except Refused as error:
                        self.failed[name, title] = str(error)
                        del clients[name]
                        continue
                    if turn >= 0:
                        samples.setdefault(name, []).append(sample)
        return {name: median(taken) for name, taken in samples.items()}

    def _clients(
        self,
        stack: ExitStack,
        title: str,
        workload: Workload,
        size: int,
        contenders: Mapping[str, Contender],
    ) -> dict[str, Client]:
        """Everybody who is ready; they prepare side by side."""
        clients: dict[str, Client] = {}
        for name, contender in contenders.items():
            if name in self.absent or name in self.left_out(workload):
                continue
            if not contender.takes_part(workload.kind):
                continue
            try:
                clients[name] = stack.enter_context(
                    self._client(contender, workload, size)
                )
            except Missing as error:
                self.absent[name] = str(error)
        for name, client in list(clients.items()):
            try:
                client.ready()
            except Refused as error:
                self.failed[name, title] = str(error)
                del clients[name]
        return clients

    @contextmanager
    def _client(
        self, contender: Contender, workload: Workload, size: int
    ) -> Iterator[Client]:
        with self.server(contender) as server:
            place = dataclasses.replace(
                server.place,
                variant=contender.variant,
                prefix=f"c{self._cases}{contender.variant}",
                facts={
                    "workload": workload.kind,
                    "in_flight": str(workload.in_flight),
                },
            )
            task = Task(
                adapter=contender.adapter_for(workload.kind),
                place=place,
                workload=workload.kind,
                payload_bytes=size,
                in_flight=workload.in_flight,
                topics=workload.topics,
                subscribers=workload.subscribers,
                acknowledged=workload.acknowledged,
                seconds=self.seconds,
                block_events=self.block_events,
            )
            client = Client(task)
            try:
                yield client
            finally:
                client.close()

    @contextmanager
    def server(self, contender: Contender) -> Iterator[Server]:
        if contender.shared:
            yield self._shared_server(contender)
            return
        with scratch(self.settings.directory) as folder:
            server = contender.start(folder, contender.variant)
            try:
                yield server
            finally:
                server.stop()

    def _shared_server(self, contender: Contender) -> Server:
        if contender.system not in self._shared:
            folder = self.settings.directory / contender.system
            folder.mkdir(exist_ok=True)
            self._shared[contender.system] = contender.start(folder, contender.variant)
        return self._shared[contender.system]


class Client:
    """A loader in a process of its own."""

    # Any: the task of that module.
    def __init__(self, task: Any, module: str = LOADER) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", module],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._tell(dataclasses.asdict(task))

    def ready(self) -> None:
        self._answer()

    def run(self) -> Sample:
        self._tell({"go": True})
        return Sample(**self._answer())

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _tell(self, topic_filter: dict[str, object]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(topic_filter) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Refused("the client ended") from None

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        answer: dict[str, Any] = json.loads(line) if line else {"error": "no answer"}
        if "error" in answer:
            raise Refused(str(answer["error"]))
        return answer


def median(samples: list[Sample]) -> Sample:
    """By rate: the runs end by time, so their lengths are alike."""
    middle = statistics.median_low([sample.events_per_s for sample in samples])
    return next(sample for sample in samples if sample.events_per_s == middle)
