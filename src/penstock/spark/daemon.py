"""Spark's daemon of Python workers; what they have imported is not collected any more.

    python -m penstock.spark.daemon

Workers are forks of it: what the reader of topics needs is imported before, and so are
the modules that ``$PENSTOCK_WORKER_IMPORTS`` names, with commas in between. Each worker
would take half a second for them by itself.

After each task a worker collects garbage. With Arrow and a lexicon in its memory that
is most of a small task, though nothing of it ever goes: what is there after imports is
frozen, and the youngest are looked at less often. The setting of Spark is
``spark.python.daemon.module``.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

from pyspark import daemon

from penstock.collector import relieve

IMPORTS = "PENSTOCK_WORKER_IMPORTS"
_READER = "penstock.spark.reader"

_serve = daemon.worker
_known = 0


def worker(sock: Any, authenticated: bool) -> int:
    """Serve a task, as Spark's own; then freeze, if anything was imported for it."""
    global _known
    try:
        code = _serve(sock, authenticated)
    except BrokenPipeError:  # the caller has ended: nothing to be told to people
        return 1
    if len(sys.modules) > _known:
        _known = len(sys.modules)
        relieve()
    return code


def prepare() -> None:
    """What all workers have from the beginning."""
    global _known
    for name in (_READER, *os.environ.get(IMPORTS, "").split(",")):
        with suppress(ImportError, ValueError):  # a worker that needs it says so
            import_module(name)
    _known = len(sys.modules)
    relieve()


if __name__ == "__main__":
    prepare()
    daemon.worker = worker
    daemon.manager()
