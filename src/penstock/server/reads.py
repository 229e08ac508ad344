"""Reads of a size of our choice, for protocols that take bytes as they come.

A loop reads as much as there is, up to a quarter of a mebibyte, and hands that over in
one piece: of a crowd of strangers that is a quarter of a mebibyte each.
"""

from __future__ import annotations

import asyncio


class Reads(asyncio.BufferedProtocol):
    """Reads for another protocol, into a buffer that others may share."""

    def __init__(self, protocol: asyncio.Protocol, buffer: memoryview) -> None:
        self._protocol = protocol
        self._buffer = buffer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._protocol.connection_made(transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._protocol.data_received(bytes(self._buffer[:nbytes]))

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._protocol.connection_lost(exc)
        # Be free without a collector: TLS keeps methods of this, and whatever this
        # leads to keeps TLS.
        self.__dict__.clear()
