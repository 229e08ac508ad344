"""A byte stream cut into lines, in batches and within bounds.

A line is what stands before ``\\n``; a ``\\r`` in front of it stays on (the codecs know
what it means to them) and counts. A line longer than the limit is thrown away while it
arrives and shows up once, at its ``\\n``, as TOO_LONG. So a splitter holds at most
``max_bytes``, whatever comes.
"""

from __future__ import annotations

from typing import Final

# No line contains a newline, so this one can stand for "was too long" in a list of
# lines: ``TOO_LONG in lines`` and ``line == TOO_LONG`` are exact.
TOO_LONG: Final = b"\n"


class LineSplitter:
    """``feed`` bytes as they come, get the lines that they completed."""

    __slots__ = ("_held", "max_bytes", "overlong")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.overlong = False  # the line under way has exceeded the limit
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The lines completed by ``data``, without their ``\\n``."""
        lines = data.split(b"\n")
        last = lines.pop()
        if lines:
            if self._held or self.overlong:
                lines[0] = self._end_line(lines[0])
            if len(data) > self.max_bytes:
                limit = self.max_bytes
                lines = [line if len(line) <= limit else TOO_LONG for line in lines]
        if last:
            self._hold(last)
        return lines

    def block(self, data: bytes) -> bytes | None:
        """The same lines in one piece, each with its ``\\n``; empty if there are none.

        None if a line may be too long: then nothing was taken in, and ``feed`` has to
        look closer.
        """
        if self.overlong or len(self._held) + len(data) > self.max_bytes:
            return None
        end = data.rfind(b"\n") + 1
        if not end:
            self._held += data
            return b""
        block = data[:end]
        if self._held:
            block = bytes(self._held) + block
            self._held.clear()
        self._held += data[end:]
        return block

    @property
    def rest(self) -> bytes:
        """What came of a line not ended yet; nothing if it is overlong."""
        return bytes(self._held)

    def _end_line(self, end: bytes) -> bytes:
        self._hold(end)
        line = TOO_LONG if self.overlong else bytes(self._held)
        self._held.clear()
        self.overlong = False
        return line

    def _hold(self, part: bytes) -> None:
        if self.overlong or len(self._held) + len(part) > self.max_bytes:
            self.overlong = True
            self._held.clear()
        else:
            self._held += part
