"""Bytes on standard output, all of them."""

from __future__ import annotations

import sys


class StandardOutput:
    """A sink that is standard output, buffered or not.

    Without a buffer (``python -u``) a write to a pipe may take only a part, and says
    so to nobody but its caller.
    """

    def write(self, data: bytes, /) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[sys.stdout.buffer.write(rest) :]


def write_line(data: bytes) -> None:
    StandardOutput().write(data + b"\n")
