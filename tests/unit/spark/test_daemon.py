"""What workers of Spark have when they are forked; forks are in tests/spark."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.spark import daemon
from penstock.spark.daemon import IMPORTS

PROGRAM = """\
import gc, sys
from penstock.spark import daemon
daemon.prepare()
known = [name in sys.modules for name in ("wave", "penstock.spark.reader")]
print(*known, gc.get_freeze_count())
"""


def test_a_worker_whose_spark_has_ended_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def serve(sock: object, authenticated: bool) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(daemon, "_serve", serve)

    assert daemon.worker(None, authenticated=True) == 1


@pytest.mark.slow
@pytest.mark.parametrize("names", ["wave", "not.there,wave", ",wave,"])
def test_what_is_named_is_imported_and_frozen(names: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, IMPORTS: names},
        capture_output=True,
        check=True,
        text=True,
    )

    named, reader, frozen = done.stdout.split()
    assert (named, reader) == ("True", "True")
    assert int(frozen) > 1000
