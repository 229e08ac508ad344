"""Measures topics as Spark tables and streams: ratios within one session."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench import machine, report
from bench.arguments import add_common
from bench.rounds import Row, Settings, scratch
from bench.spark import batch, json_, latency, network, page, stream
from bench.spark.scene import Scene, scene

PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"
WORKLOADS: dict[str, Callable[[Scene], list[Row]]] = {
    "batch": batch.run,
    "network": network.run,
    "json": json_.run,
    "stream": stream.run,
    "latency": latency.run,
}


def main() -> None:
    options = _arguments()
    # Ends like Ctrl-C, so that neither Spark nor a server is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    logging.getLogger("penstock").setLevel(logging.ERROR)
    rows: list[Row] = []
    notes: list[str] = []
    with scratch(options.directory) as folder:
        facts = machine.describe(folder.resolve())
        settings = Settings(directory=folder, quick=options.quick)
        with scene(settings) as one:
            facts |= spark_facts(one)
            for kind in options.only or WORKLOADS:
                rows += _measured(kind, one, notes)
    print()
    for name, fact in facts.items():
        print(f"{name}: {fact}")
    print()
    print(report.text(rows))
    for note in notes:
        print(note)
    if options.json is not None:
        report.write_json(options.json, facts, rows)
    if options.write_docs:
        page.write(PAGE, facts, rows, notes)


def spark_facts(one: Scene) -> dict[str, str]:
    """What Spark says of itself."""
    jvm = one.spark.sparkContext._jvm
    assert jvm is not None, "a session of this process"
    java = getattr(jvm, "java.lang.System").getProperty("java.version")
    return {"Spark": one.spark.version, "Java": str(java)}


def _measured(kind: str, one: Scene, notes: list[str]) -> list[Row]:
    """Rows of a workload; one that fails does not take the others with it."""
    start = time.monotonic()
    try:
        rows = WORKLOADS[kind](one)
    except Exception as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        notes.append(f"{kind} did not finish: {reason}")
        print(f"{kind} did not finish: {error}", file=sys.stderr, flush=True)
        return []
    print(f"{kind}: {time.monotonic() - start:.0f} s", flush=True)
    return rows


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=list(WORKLOADS), help="some instead of all"
    )
    add_common(parser, "a tenth of the work, for a first look")
    return parser.parse_args()


if __name__ == "__main__":
    main()
