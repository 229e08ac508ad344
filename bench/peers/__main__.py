"""Compares Penstock with its peers: same machine, same minute, same client."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench import machine, report
from bench.arguments import add_common
from bench.peers import (
    flatness,
    install,
    maze_load,
    mqtt,
    page,
    programs,
    quiet,
    summary,
)
from bench.peers.adapter import Refused
from bench.peers.field import CONTENDERS, WORKLOADS
from bench.peers.harness import Bench
from bench.peers.processes import Missing
from bench.peers.rows import rows_of
from bench.rounds import Row, Sample, Settings, scratch

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"


@dataclass(kw_only=True)
class Run:
    """What was measured so far, and of whom."""

    bench: Bench
    peers: list[str] | None = None
    results: dict[tuple[str, str], dict[str, Sample]] = field(default_factory=dict)

    def workloads(self, group: str) -> tuple[list[Row], list[str]]:
        """The rows of one group, and what is to be said about those not there."""
        rows, notes, bench = [], [], self.bench
        contenders = {
            name: contender
            for name, contender in CONTENDERS.items()
            if self.peers is None or contender.system in self.peers
        }
        for workload, what in WORKLOADS.items():
            if what.group != group:
                continue
            # In a hurry, one size is enough.
            for case, size in list(what.sizes.items())[: 1 if self._quick else None]:
                title = f"{workload}, {case}"
                if bench.out_of_time:
                    notes.append(f"not measured for want of time: {title}")
                    continue
                start = time.monotonic()
                found = bench.case(title, what, size, contenders)
                self.results[workload, case] = found
                rows += rows_of(workload, case, self.results)
                _took(title, start)
        return rows, notes + self._left_out(group)

    def _left_out(self, group: str) -> list[str]:
        """One note for each reason of each contender."""
        found: dict[tuple[str, str], list[str]] = {}
        for workload, what in WORKLOADS.items():
            if what.group == group:
                for name, why in self.bench.left_out(what).items():
                    if self.peers is None or CONTENDERS[name].system in self.peers:
                        found.setdefault((name, why), []).append(workload)
        return [
            f"{name} takes no part in {'; '.join(titles)}: {why}"
            for (name, why), titles in found.items()
        ]

    def programs(self) -> tuple[list[Row], list[str]]:
        found = programs.measure(self.bench, self.peers)
        self.results[programs.WORKLOAD, programs.CASE] = found
        return programs.rows_of(found), []

    def quiet(self) -> tuple[list[Row], list[str]]:
        found = quiet.measure(self.bench, self.peers)
        self.results[quiet.GROUP, "100 B"] = found
        return quiet.rows_of(found, quick=self._quick), []

    def mqtt(self) -> tuple[list[Row], list[str]]:
        """With peers and a client of its own."""
        rows = []
        for cell, found in mqtt.run(self.bench, self.peers).items():
            self.results[f"{mqtt.NAME} {cell.title}", cell.case] = found
            rows += mqtt.rows_of(cell, found)
        return rows, []

    def own(self, run: Callable[[Bench], list[Row]]) -> tuple[list[Row], list[str]]:
        """Something that Penstock does alone."""
        try:
            return run(self.bench), []
        except (Missing, Refused) as error:
            return [], [str(error)]

    @property
    def _quick(self) -> bool:
        return self.bench.settings.quick


OTHERS: dict[str, Callable[[Run], tuple[list[Row], list[str]]]] = {
    programs.GROUP: Run.programs,
    quiet.GROUP: Run.quiet,
    "maze": lambda run: run.own(maze_load.run),
    "flatness": lambda run: run.own(flatness.run),
    mqtt.KIND: Run.mqtt,
}
GROUPS = (*dict.fromkeys(what.group for what in WORKLOADS.values()), *OTHERS)


def main() -> None:
    options = _arguments()
    # Ends like Ctrl-C, so that no server is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logging.getLogger("penstock").setLevel(logging.ERROR)
    if options.install:
        install.install()
    with scratch(options.directory) as folder:
        facts = machine.describe(folder.resolve())
        if options.quick:
            facts["runs"] = "short runs, for a first look"
        bench = Bench.of(Settings(directory=folder, quick=options.quick))
        run = Run(bench=bench, peers=options.peers)
        try:
            tables = {group: measure(run, group) for group in options.only or GROUPS}
        finally:
            bench.close()
    print()
    for name, fact in facts.items():
        print(f"{name}: {fact}")
    lines = summary.lines(run.results)
    rows = [row for table, _ in tables.values() for row in table]
    print(f"\n{report.text(rows)}\n")
    if lines:
        print(f"{page.summary(lines)}\n")
    for group, (_, notes) in tables.items():
        for note in notes:
            print(f"{group}: {note}")
    if options.json is not None:
        report.write_json(options.json, facts, rows)
    if options.write_docs:
        for group, (table, notes) in tables.items():
            page.write_group(PAGE, facts, group, table, notes)
        # What stands in front is of one run, or it would compare what does not.
        if options.only is None and options.peers is None:
            page.write_summary(PAGE, facts, lines)


def measure(run: Run, group: str) -> tuple[list[Row], list[str]]:
    """Rows of a group, and what is to be said about those that are not there."""
    bench, start = run.bench, time.monotonic()
    bench.failed = {}
    if group in OTHERS:
        rows, notes = OTHERS[group](run)
    else:
        rows, notes = run.workloads(group)
    notes = [f"{name} is missing: {why}" for name, why in bench.absent.items()] + notes
    notes += [
        f"{name} did not finish {title}: {why}"
        for (name, title), why in bench.failed.items()
    ]
    _took(f"all of {group}", start)
    return rows, notes


def _took(what: str, start: float) -> None:
    print(f"{what}: {time.monotonic() - start:.0f} s", flush=True)


def _arguments() -> argparse.Namespace:
    systems = {contender.system for contender in CONTENDERS.values()}
    systems |= set(mqtt.CONTENDERS)
    parser = argparse.ArgumentParser(prog="python -m bench.peers", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=GROUPS, help="some workloads instead of all"
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
