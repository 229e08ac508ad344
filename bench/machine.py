"""What the measurements ran on, read from the machine itself."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe(directory: Path) -> dict[str, str]:
    return {
        "CPU": f"{_cpu()}, {os.cpu_count()} cores",
        "memory": f"{_memory_gib():.0f} GiB",
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": _file_system(directory),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _cpu() -> str:
    for line in _lines("/proc/cpuinfo"):
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _memory_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)


def _file_system(directory: Path) -> str:
    """The type of the mount with the longest path above ``directory``."""
    best, found = "", "unknown"
    for line in _lines("/proc/mounts"):
        _, mount, kind, *_ = line.split(" ")
        if directory.is_relative_to(mount) and len(mount) >= len(best):
            best, found = mount, kind
    return found


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
