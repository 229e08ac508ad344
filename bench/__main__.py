"""Runs the benchmarks and prints their table."""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from pathlib import Path

from bench import (
    append,
    arrow,
    chains,
    commits,
    dashboard,
    group_commit,
    http,
    machine,
    recovery,
    report,
)
from bench.rounds import Row, Settings, scratch

BENCHMARKS = {
    "append": append.run,
    "group-commit": group_commit.run,
    "arrow": arrow.run,
    "commits": commits.run,
    "recovery": recovery.run,
    "chains": chains.run,
    "http": http.run,
    "dashboard": dashboard.run,
}
PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"


def main() -> None:
    options = _arguments()
    # A killed writer leaves a torn tail; that is no news here.
    logging.getLogger("penstock").setLevel(logging.ERROR)
    rows: list[Row] = []
    with scratch(options.directory) as folder:
        facts = machine.describe(folder.resolve())
        settings = Settings(directory=folder, quick=options.quick)
        for name in options.names or BENCHMARKS:
            start = time.perf_counter()
            rows += BENCHMARKS[name](settings)
            print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    print()
    for name, fact in facts.items():
        print(f"{name}: {fact}")
    print()
    print(report.text(rows))
    if options.json is not None:
        report.write_json(options.json, facts, rows)
    if options.write_docs:
        report.write_docs(PAGE, facts, rows)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"of: {', '.join(BENCHMARKS)}"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the work, for a first look"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows too")
    parser.add_argument(
        "--write-docs", action="store_true", help="put the table into the docs page"
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="where to write, on the disk to be measured (default: %(default)s)",
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHMARKS):
        parser.error(f"no benchmark is called {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    main()
