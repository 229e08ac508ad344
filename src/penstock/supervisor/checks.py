"""What a person asked for, looked at before anything is started."""

from __future__ import annotations

import re

from penstock.errors import InvalidOption, InvalidStore
from penstock.store.store import open_store

# Spark would take it, and do nothing but begin batches.
LEAST_TRIGGER_S = 0.01
_LOCAL = re.compile(r"local(\[([1-9]\d*|\*)(,\s*[1-9]\d*)?\])?")
_SIMULATED = re.compile(r"local-cluster\[\s*[1-9]\d*\s*(,\s*[1-9]\d*\s*){2}\]")
_HOST = r"([\w.-]+|\[[0-9a-fA-F:.]+\])"
_CLUSTER = re.compile(rf"spark://{_HOST}:\d{{1,5}}(,{_HOST}:\d{{1,5}})*")
MASTERS = (
    "local, local[CORES], local[*], spark://HOST:PORT or "
    "local-cluster[WORKERS,CORES,MEMORY]"
)
STORES = "postgresql://USER@HOST/DATABASE or mongodb://HOST/DATABASE?replicaSet=NAME"


def check_master(master: str) -> None:
    """Raises InvalidOption."""
    if not any(one.fullmatch(master) for one in (_LOCAL, _SIMULATED, _CLUSTER)):
        raise InvalidOption("--master", master, MASTERS)


def check_trigger(trigger_s: float) -> None:
    """Raises InvalidOption."""
    if trigger_s < LEAST_TRIGGER_S:
        limit = f"at least {LEAST_TRIGGER_S * 1000:.0f}ms"
        raise InvalidOption("--trigger", f"{trigger_s:g}s", limit)


def check_store(url: str) -> None:
    """Raises InvalidOption, with no password; MissingExtra."""
    try:
        open_store(url).close()
    except InvalidStore as error:
        # Not chained: a password may be in there.
        limit = f"{STORES} ({error.reason})"
        raise InvalidOption("--store", error.place, limit) from None
