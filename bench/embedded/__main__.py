"""Compares the embedded broker with Python peers: same machine, same minute."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
from pathlib import Path

from bench import machine, report
from bench.arguments import add_common
from bench.embedded import page
from bench.embedded.field import WORKLOADS
from bench.embedded.harness import Bench
from bench.embedded.rows import rows_of
from bench.peers import install
from bench.rounds import Row, Settings, scratch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"


def main() -> None:
    options = _arguments()
    # Ends like Ctrl-C, so that no server is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logging.getLogger("penstock").setLevel(logging.ERROR)
    if options.install:
        install.install(["Redis"])
    with scratch(options.directory) as folder:
        facts = machine.describe(folder.resolve())
        bench = Bench.of(Settings(directory=folder, quick=options.quick))
        rows = measure(bench, options.only, options.systems)
    notes = notes_of(bench)
    print()
    for name, fact in facts.items():
        print(f"{name}: {fact}")
    print()
    print(report.text(rows))
    print()
    for note in notes:
        print(note)
    if options.json is not None:
        report.write_json(options.json, facts, rows)
    if options.write_docs:
        page.write(PAGE, facts, rows, notes)


def measure(
    bench: Bench, only: list[str] | None, systems: list[str] | None
) -> list[Row]:
    rows: list[Row] = []
    for title, workload in WORKLOADS.items():
        if only is not None and workload.kind not in only:
            continue
        contenders = {
            name: contender
            for name, contender in workload.contenders.items()
            if systems is None or contender.system in systems
        }
        start = time.monotonic()
        rows += rows_of(title, workload, bench.case(title, contenders))
        print(f"{title}: {time.monotonic() - start:.0f} s", flush=True)
    return rows


def notes_of(bench: Bench) -> list[str]:
    """What is to be said about rows that are not there."""
    return [f"{name} is missing: {why}" for name, why in bench.absent.items()] + [
        f"{name} did not finish {title}: {why}"
        for (name, title), why in bench.failed.items()
    ]


def _arguments() -> argparse.Namespace:
    kinds = [workload.kind for workload in WORKLOADS.values()]
    systems = {
        contender.system
        for workload in WORKLOADS.values()
        for contender in workload.contenders.values()
    }
    parser = argparse.ArgumentParser(
        prog="python -m bench.embedded", description=__doc__
    )
    parser.add_argument(
        "--only", nargs="+", choices=kinds, help="some workloads instead of all"
    )
    parser.add_argument(
        "--systems", nargs="+", choices=sorted(systems), help="some instead of all"
    )
    parser.add_argument(
        "--install", action="store_true", help="try to install a missing Redis first"
    )
    add_common(parser, "a tenth of the work, for a first look")
    return parser.parse_args()


if __name__ == "__main__":
    main()
