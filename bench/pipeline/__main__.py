"""Measures the pipeline: all stages beside its jobs alone, and its bulk writes."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from bench import machine, report
from bench.arguments import add_common
from bench.pipeline import cluster, jobs, page, rows, stages, store
from bench.pipeline.scene import Scene
from bench.rounds import Row, Settings, scratch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
KINDS = ("stages", "mongodb", "jobs", "cluster", "store")

Found = TypeVar("Found")


def main() -> None:
    options = _arguments()
    # Ends like Ctrl-C, so that neither Spark nor a server is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logging.getLogger("penstock").setLevel(logging.ERROR)
    with scratch(options.directory) as folder:
        facts = machine.describe(folder.resolve())
        settings = Settings(directory=folder, quick=options.quick)
        notes: list[str] = []
        table = measure(Scene(settings, options.seconds), options.only or KINDS, notes)
    print()
    for name, fact in facts.items():
        print(f"{name}: {fact}")
    print()
    print(report.text(table))
    for note in notes:
        print(note)
    if options.json is not None:
        report.write_json(options.json, facts, table)
    if options.write_docs:
        page.write(PAGE, facts, table, notes)


def measure(
    scene: Scene, kinds: list[str] | tuple[str, ...], notes: list[str]
) -> list[Row]:
    """The rows of all that finished; ``notes`` gets what did not."""
    table: list[Row] = []
    # The jobs first: the stages are held against the plain process among them.
    alone = whole = None
    if "jobs" in kinds:
        alone = _measured("jobs", lambda: jobs.run(scene), notes)
    if "stages" in kinds:
        whole = _measured("stages", lambda: stages.run(scene), notes)
        if whole is not None:
            table += rows.of_stages(whole, None if alone is None else alone[jobs.PLAIN])
    if "mongodb" in kinds:
        other = _measured("mongodb", lambda: stages.run_mongodb(scene), notes)
        if other is not None:
            table.append(rows.of_mongodb(other, None if whole is None else whole.most))
    if alone is not None:
        table += rows.of_jobs(alone[jobs.PLAIN], alone[jobs.SPARK])
    if "cluster" in kinds:
        table += cluster.rows(
            _measured("cluster", lambda: cluster.run(scene), notes) or {}
        )
    if "store" in kinds:
        found = _measured("store", lambda: store.run(scene, notes), notes)
        table += rows.of_store(found or [])
    return table


def _measured(kind: str, run: Callable[[], Found], notes: list[str]) -> Found | None:
    """What was found; one that fails does not take the others with it."""
    start = time.monotonic()
    try:
        found = run()
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        notes.append(f"{kind} did not finish: {reason}")
        print(f"{kind} did not finish: {error}", file=sys.stderr, flush=True)
        return None
    print(f"{kind}: {time.monotonic() - start:.0f} s", flush=True)
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.pipeline", description=__doc__
    )
    parser.add_argument("--only", nargs="+", choices=KINDS, help="some instead of all")
    parser.add_argument(
        "--seconds", type=float, help="how long to look at the stages, each time"
    )
    add_common(parser, "fewer tweets and shorter looks, for a first look")
    return parser.parse_args()


if __name__ == "__main__":
    main()
