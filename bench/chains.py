"""The index of chains: what it costs to fill, to keep, and to ask.

Orders cause payments and stock movements, payments cause shipping, shipping causes an
invoice and a mail: six events a chain in six topics, in batches of 100, payloads of 100
bytes. The index is filled in the steps a server would take, then random events are
asked for, with everything in the page cache.
"""

from __future__ import annotations

import random
import statistics
import time
from pathlib import Path

from bench.rounds import Row, Settings, Stopwatch, payloads, scratch
from penstock.chains import ChainQuestion, Chains
from penstock.log import Columns, Log, TopicOptions

NAME = "chains"
BATCH = 100
# Events, and whether their publisher gives them ids: both kinds once, then many.
CASES = {
    "1 M, generated ids": (1_000_000, False),
    "1 M, given ids": (1_000_000, True),
    "10 M, generated ids": (10_000_000, False),
}
# Each topic, and which one causes it.
CAUSES = {
    "order": None,
    "payment": "order",
    "stock": "order",
    "shipping": "payment",
    "invoice": "shipping",
    "mail": "shipping",
}
QUESTIONS = 200
START_MS = 1_700_000_000_000


def run(settings: Settings) -> list[Row]:
    rows: list[Row] = []
    for case, (events, named) in CASES.items():
        rounds = settings.scaled(events) // BATCH // len(CAUSES)
        with scratch(settings.directory) as folder:
            rows += _case(folder, case, rounds, named=named)
    return rows


def _case(folder: Path, case: str, rounds: int, *, named: bool) -> list[Row]:
    with Log.open(folder) as log:
        ids = _write(log, rounds, named=named)
        chains = Chains(log)
        events = rounds * BATCH * len(CAUSES)
        watch, worst_s = Stopwatch(), _fill(chains)
        filled = watch.stop(events, 0)
        size = sum(path.stat().st_size for path in folder.glob("chains.sqlite*"))
        times_s = _ask(chains, ids)
        chains.close()
    rate = f"{filled.events_per_s / 1e6:.2f} M events/s, {size / events:.0f} B an event"
    median_ms = statistics.median(times_s) * 1000
    slow_ms = sorted(times_s)[len(times_s) * 99 // 100] * 1000
    return [
        Row(
            benchmark=NAME,
            case=case,
            contender="filling the index",
            rate=f"{rate}, worst step {worst_s * 1000:.0f} ms",
            cpu_s_per_million=filled.cpu_s_per_million,
        ),
        Row(
            benchmark=NAME,
            case=case,
            contender="a chain of 6 events",
            rate=f"{median_ms:.2f} ms, 99 % within {slow_ms:.2f} ms",
        ),
    ]


def _write(log: Log, rounds: int, *, named: bool) -> list[str]:
    """Publish it all; ids of some orders."""
    data, chosen = payloads(BATCH, 100), []
    for topic in CAUSES:
        log.create_topic(topic, TopicOptions(durability="os"))
    for number in range(rounds):
        made: dict[str | None, list[str]] = {}
        for place, (topic, cause) in enumerate(CAUSES.items()):
            now_ms = START_MS + number * 100 + place
            given = [f"{topic}-{number * BATCH + index}" for index in range(BATCH)]
            columns = Columns(
                data,
                now_ms,
                ids=given if named else None,
                parents=None if cause is None else made[cause],
            )
            appended = log.append(topic, columns)
            made[topic] = (
                given if named else [appended.generated_id(at) for at in range(BATCH)]
            )
            log.commit(sync=False)
        chosen.append(made["order"][number % BATCH])
    return chosen


def _fill(chains: Chains) -> float:
    """Index everything; the time of the longest step."""
    worst_s, more = 0.0, True
    while more:
        begun_s = time.perf_counter()
        more = chains.step()
        worst_s = max(worst_s, time.perf_counter() - begun_s)
    return worst_s


def _ask(chains: Chains, ids: list[str]) -> list[float]:
    chosen = random.Random(1).choices(ids, k=QUESTIONS)
    times_s = []
    for id_ in chosen:
        begun_s = time.perf_counter()
        _, walk = chains.ask(ChainQuestion(id=id_))
        times_s.append(time.perf_counter() - begun_s)
        assert walk.done
        assert len(walk.take()) == len(CAUSES)
    return times_s
