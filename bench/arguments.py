"""What every comparison can be told on its command line."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path


def add_common(parser: argparse.ArgumentParser, quick: str) -> None:
    """The options that all of them have; ``quick`` says what a quick run is."""
    parser.add_argument("--quick", action="store_true", help=quick)
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
