"""Frames: how messages follow each other on the connection.

    offset  size  field
    0       4     length of the message in bytes, unsigned, little-endian
    4       n     the message, MessagePack

A frame that arrives in one piece is not copied. One that does not is gathered, and its
length is checked as soon as it is known: a splitter holds at most the limit and the
length field, whatever comes.
"""

from __future__ import annotations

import struct

from penstock.errors import LocalProtocolError, RemoteProtocolError

_LENGTH = struct.Struct("<I")
HEADER_BYTES = _LENGTH.size
MAX_LENGTH = (1 << 32) - 1


class FrameSplitter:
    """``feed`` bytes as they come, get the messages that they completed."""

    __slots__ = ("_held", "max_bytes")

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self._held = bytearray()

    def feed(self, data: bytes) -> list[bytes | memoryview]:
        """Messages without their length; raises RemoteProtocolError if one is too long.

        After that error the stream has no meaning any more, and what came in the same
        piece before it is not returned: close the connection.
        """
        frames: list[bytes | memoryview] = []
        view = memoryview(data)
        at = self._gather(view, frames) if self._held else 0
        # Once for each message, and there may be thousands: nothing is called that
        # need not be.
        size, limit, length_at = len(data), self.max_bytes, _LENGTH.unpack_from
        while size - at >= HEADER_BYTES:
            (length,) = length_at(data, at)
            if length > limit:
                raise _too_long(length, limit)
            begin = at + HEADER_BYTES
            end = begin + length
            if end > size:
                break
            frames.append(view[begin:end])
            at = end
        self._held += view[at:]
        return frames

    @property
    def held_bytes(self) -> int:
        """How much of a frame not ended yet has come."""
        return len(self._held)

    def _gather(self, view: memoryview, frames: list[bytes | memoryview]) -> int:
        """Complete the frame under way as far as possible; how much that took."""
        missing_header = max(HEADER_BYTES - len(self._held), 0)
        self._held += view[:missing_header]
        if len(self._held) < HEADER_BYTES:
            return len(view)
        missing = HEADER_BYTES + self._length(self._held) - len(self._held)
        rest = view[missing_header : missing_header + missing]
        self._held += rest
        if len(rest) == missing:
            # Not copied: nothing else has what was held from now on.
            frames.append(memoryview(self._held)[HEADER_BYTES:])
            self._held = bytearray()
        return missing_header + len(rest)

    def _length(self, frame: memoryview | bytearray) -> int:
        length: int = _LENGTH.unpack_from(frame)[0]
        if length > self.max_bytes:
            raise _too_long(length, self.max_bytes)
        return length


def _too_long(length: int, limit: int) -> RemoteProtocolError:
    return RemoteProtocolError("native", f"message of {length} bytes exceeds {limit}")


def frame(message: bytes) -> bytes:
    """``message`` with its length in front; raises LocalProtocolError if too long."""
    if len(message) > MAX_LENGTH:
        raise LocalProtocolError(
            "native", f"message of {len(message)} bytes exceeds {MAX_LENGTH}"
        )
    return _LENGTH.pack(len(message)) + message
