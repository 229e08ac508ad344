"""Many topics that nothing happens in: made, kept, and there again after a start.

Each gets one event of 100 bytes, so many in flight as elsewhere, all synced. Memory is
what the server's processes have resident when they are started with all of them, beyond
what they had without: so long as they are made, their events are in memory as well.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import time
from collections.abc import Mapping

from bench.peers.adapter import Adapter, Place, Refused, payload
from bench.peers.field import CONTENDERS, NATS_ALWAYS, REDIS_ALWAYS, SYNC, VALKEY_ALWAYS
from bench.peers.harness import Bench, Client
from bench.peers.loader import STALL_S, Task
from bench.peers.mqtt_loader import resident_bytes
from bench.peers.processes import Missing
from bench.rounds import Row, Sample, scratch

GROUP = "quiet"
NAMES = (SYNC, NATS_ALWAYS, REDIS_ALWAYS, VALKEY_ALWAYS)
TOPICS, QUICK_TOPICS = 100_000, 5_000
SIZE, IN_FLIGHT = 100, 4000
# Whoever has not made all of them by then has made fewer.
CREATE_S, QUICK_CREATE_S = 60.0, 10.0
START_S = 120.0
LEAST_PER_S, MOST_BYTES, MOST_START_S = 5000, 1024, 5.0


def title(*, quick: bool) -> str:
    return f"{QUICK_TOPICS if quick else TOPICS} quiet topics"


def measure(bench: Bench, peers: list[str] | None) -> dict[str, Sample]:
    """One turn each: it takes long, and none of this is noise."""
    samples: dict[str, Sample] = {}
    for name in NAMES:
        if peers is not None and CONTENDERS[name].system not in peers:
            continue
        try:
            samples[name] = _sample(bench, name)
        except Missing as error:
            bench.absent[name] = str(error)
        except Refused as error:
            bench.failed[name, GROUP] = str(error)
    return samples


def rows_of(samples: Mapping[str, Sample], *, quick: bool) -> list[Row]:
    rows = []
    for name, sample in samples.items():
        each, start_s = sample.facts["bytes_each"], sample.facts["start_s"]
        ours = name == SYNC
        met = (
            sample.events_per_s >= LEAST_PER_S
            and each <= MOST_BYTES
            and start_s < MOST_START_S
        )
        rows.append(
            Row(
                benchmark=title(quick=quick),
                case=f"{sample.events} made",
                contender=name,
                rate=f"{sample.events_per_s:.0f} topics/s, {each / 1024:.2f} KiB each, "
                f"stops in {sample.facts['stop_s']:.1f} s, "
                f"starts in {start_s:.1f} s",
                cpu_s_per_million=sample.cpu_s_per_million,
                target=f"at least {LEAST_PER_S}/s, at most {MOST_BYTES // 1024} KiB, "
                f"under {MOST_START_S:g} s"
                if ours
                else "",
                met=met if ours else None,
            )
        )
    return rows


def _sample(bench: Bench, name: str) -> Sample:
    contender, quick = CONTENDERS[name], bench.settings.quick
    count = QUICK_TOPICS if quick else TOPICS
    with scratch(bench.settings.directory) as folder:
        server = contender.start(folder, contender.variant)
        try:
            task = Task(
                adapter=contender.adapter,
                place=server.place,
                workload="create",
                payload_bytes=SIZE,
                in_flight=IN_FLIGHT,
                seconds=QUICK_CREATE_S if quick else CREATE_S,
                events=count,
                block_events=count,
            )
            client = Client(task)
            try:
                client.ready()
                before = resident_bytes(server.place.pids)
                sample = client.run()
            finally:
                client.close()
        finally:
            begin = time.perf_counter()
            server.stop(START_S)  # which may write a file for each
            stop_s = time.perf_counter() - begin
        begin = time.perf_counter()
        server = contender.start(folder, contender.variant)
        try:
            _first_answer(contender.adapter, server.place)
            start_s = time.perf_counter() - begin
            grown = resident_bytes(server.place.pids) - before
        finally:
            server.stop()
    facts = {**sample.facts, "bytes_each": grown / sample.events}
    facts |= {"start_s": start_s, "stop_s": stop_s}
    return dataclasses.replace(sample, facts=facts)


def _first_answer(words: str, place: Place) -> None:
    """Return when it confirms an event: some listen long before they answer."""
    module, _, name = words.partition(":")
    adapter: Adapter = getattr(importlib.import_module(module), name)(place)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        with contextlib.suppress(Refused, OSError):
            with adapter.publisher() as sock:
                sock.settimeout(STALL_S)
                sock.sendall(adapter.request(0, 0, payload(0, SIZE)))
                while not adapter.confirmed(sock.recv(1 << 16)):
                    pass
            return
        time.sleep(0.02)
    raise Refused(f"no answer in {START_S:.0f} s")
