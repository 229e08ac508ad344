"""Compares Penstock with its peers: same machine, same minute, same client."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
from pathlib import Path

from bench import machine, report
from bench.arguments import add_common
from bench.peers import flatness, install, maze_load, mqtt, mqtt_page, page
from bench.peers.adapter import Refused
from bench.peers.field import CONTENDERS, WORKLOADS
from bench.peers.harness import Bench
from bench.peers.processes import Missing
from bench.peers.rows import rows_of
from bench.rounds import Row, Settings, scratch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
OWN = {"maze": maze_load.run, "flatness": flatness.run}


def main() -> None:
    options = _arguments()
    # Ends like Ctrl-C, so that no server is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logging.getLogger("penstock").setLevel(logging.ERROR)
    if options.install:
        install.install()
    with scratch(options.directory) as folder:
        facts = machine.describe(folder.resolve())
        bench = Bench.of(Settings(directory=folder, quick=options.quick))
        try:
            rows, notes = measure(bench, options.only, options.peers)
            devices, remarks = measure_mqtt(bench, options.only, options.peers)
        finally:
            bench.close()
    print()
    for name, fact in facts.items():
        print(f"{name}: {fact}")
    print()
    print(report.text([*rows, *devices]))
    print()
    for note in (*notes, *remarks):
        print(note)
    if options.json is not None:
        report.write_json(options.json, facts, [*rows, *devices])
    if options.write_docs and rows:
        page.write(PAGE, facts, rows, notes)
    if options.write_docs and devices:
        page.write(PAGE, facts, devices, remarks, mqtt_page.PLACE)


def measure(
    bench: Bench, only: list[str] | None, peers: list[str] | None
) -> tuple[list[Row], list[str]]:
    """All rows, and what is to be said about those that are not there."""
    rows: list[Row] = []
    late: list[str] = []
    contenders = {
        name: contender
        for name, contender in CONTENDERS.items()
        if peers is None or contender.system in peers
    }
    for workload, what in WORKLOADS.items():
        # In a hurry, one size is enough.
        sizes = list(what.sizes.items())[: 1 if bench.settings.quick else None]
        for case, size in sizes:
            title = f"{workload}, {case}"
            if only is not None and what.kind not in only:
                continue
            if bench.out_of_time:
                late.append(title)
                continue
            start = time.monotonic()
            samples = bench.case(title, what, size, contenders)
            rows += rows_of(workload, case, samples)
            print(f"{title}: {time.monotonic() - start:.0f} s", flush=True)
    for name, run in OWN.items():
        if only is not None and name not in only:
            continue
        if bench.out_of_time:
            late.append(name)
            continue
        try:
            rows += run(bench)
        except (Missing, Refused) as error:
            bench.failed["Penstock", name] = str(error)
    return rows, _notes(bench, late)


def measure_mqtt(
    bench: Bench, only: list[str] | None, peers: list[str] | None
) -> tuple[list[Row], list[str]]:
    """The same for MQTT, which has peers and a client of its own."""
    if only is not None and mqtt.KIND not in only:
        return [], []
    bench.absent, bench.failed = {}, {}
    rows = mqtt.run(bench, peers)
    notes = [f"{name} is missing: {why}" for name, why in bench.absent.items()]
    notes += [
        f"{name} did not finish {title}: {why}"
        for (name, title), why in bench.failed.items()
    ]
    return rows, notes


def _notes(bench: Bench, late: list[str]) -> list[str]:
    notes = [f"{name} is missing: {why}" for name, why in bench.absent.items()]
    notes += [
        f"{name} did not finish {title}: {why}"
        for (name, title), why in bench.failed.items()
    ]
    notes += [
        f"{name} takes no part in {workload}: {why}"
        for workload, what in WORKLOADS.items()
        for name, why in bench.left_out(what).items()
    ]
    notes += [f"not measured for want of time: {title}" for title in late]
    return notes


def _arguments() -> argparse.Namespace:
    kinds = sorted({what.kind for what in WORKLOADS.values()} | {*OWN, mqtt.KIND})
    systems = {contender.system for contender in CONTENDERS.values()}
    systems |= set(mqtt.CONTENDERS)
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=kinds, help="some workloads instead of all"
    )
    parser.add_argument(
        "--peers",
        nargs="+",
        choices=sorted(systems),
        help="some systems instead of all",
    )
    parser.add_argument(
        "--install", action="store_true", help="try to install missing peers first"
    )
    add_common(parser, "short runs, for a first look")
    return parser.parse_args()


if __name__ == "__main__":
    main()
