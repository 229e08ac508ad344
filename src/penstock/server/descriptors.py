"""Descriptors: as many as the system gives, and some that connections cannot take."""

from __future__ import annotations

import resource
from contextlib import suppress

# Files of the log, of its readers and of the loop: a server that cannot open its own
# files any more loses more than one that refuses a connection. Of a small limit a half.
KEPT_FILES = 512


def raise_limit(connections: int) -> None:
    """Have enough for so many connections, as far as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + KEPT_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # then it stays as it was
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def room_for_connections() -> int:
    """How many connections there may be before they take what files need."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 1 << 30
    return max(soft - KEPT_FILES, soft // 2)
