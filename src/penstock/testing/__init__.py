"""Fakes that are shipped: complete, documented, and used by our own tests.

    from penstock.testing import Harness, replay

Importing this package is cheap: its names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.testing.blocking import Harness
    from penstock.testing.clock import VirtualClock
    from penstock.testing.crashdisk import CrashDisk, PowerCut
    from penstock.testing.disk import FaultyDisk
    from penstock.testing.faults import InjectedFault
    from penstock.testing.harness import AsyncHarness
    from penstock.testing.memory_journal import MemoryJournal
    from penstock.testing.replaying import replay, replay_async

__all__ = [
    "AsyncHarness",
    "CrashDisk",
    "FaultyDisk",
    "Harness",
    "InjectedFault",
    "MemoryJournal",
    "PowerCut",
    "VirtualClock",
    "replay",
    "replay_async",
]

_ROOMS = {
    "AsyncHarness": "harness",
    "CrashDisk": "crashdisk",
    "FaultyDisk": "disk",
    "Harness": "blocking",
    "InjectedFault": "faults",
    "MemoryJournal": "memory_journal",
    "PowerCut": "crashdisk",
    "VirtualClock": "clock",
    "replay": "replaying",
    "replay_async": "replaying",
}


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
