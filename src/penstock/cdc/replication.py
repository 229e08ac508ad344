"""The stream of a replication slot, as messages; PostgreSQL is told what is stored.

XLogData    w  i64 position, i64 end, i64 time, what pgoutput says
Keepalive   k  i64 position, i64 time, i8 whether an answer is wanted
Status      r  i64 written, i64 flushed, i64 applied, i64 time, i8 1: answer
"""

from __future__ import annotations

import select
from contextlib import suppress
from struct import Struct

import psycopg
from psycopg import pq
from psycopg.errors import error_from_result

from penstock.cdc.pgoutput import lsn_text
from penstock.cdc.slot import connected

_STATUS = Struct("!cqqqqb")
# What stands in front of what pgoutput says.
HEAD_BYTES = 25
DATA = ord("w")
KEEPALIVE = ord("k")
_POSITION = Struct("!q")
# How long PostgreSQL may take to begin.
START_S = 60.0
SEND_S = 10.0


class Replication:
    """A connection that streams from a slot, or is on its way to."""

    def __init__(self, url: str, slot: str, start_lsn: int) -> None:
        """Raises StoreRefused, StoreUnreachable, psycopg.Error."""
        self._connection = connected(url, replication="database")
        self._link = self._connection.pgconn
        try:
            self._start(slot, start_lsn)
        except BaseException:
            self.close()
            raise

    def _start(self, slot: str, start_lsn: int) -> None:
        command = (
            f'START_REPLICATION SLOT "{slot}" LOGICAL {lsn_text(start_lsn)} '
            f"(proto_version '1', publication_names '\"{slot}\"')"
        )
        self._link.send_query(command.encode())
        while self._link.is_busy():
            if not self._readable(START_S):
                raise psycopg.OperationalError(f"no answer for {START_S:g} s")
            self._link.consume_input()
        result = self._link.get_result()
        if result is None:
            raise psycopg.OperationalError("the connection is lost")
        if result.status != pq.ExecStatus.COPY_BOTH:
            raise error_from_result(result)

    def next(self) -> bytes | None:
        """A message, with its head; None if none has come. Raises psycopg.Error."""
        size, data = self._link.get_copy_data(1)
        if size == 0:
            self._link.consume_input()
            size, data = self._link.get_copy_data(1)
        if size > 0:
            return bytes(data)
        if size < 0:
            self._ended()
        return None

    def wait(self, seconds: float) -> None:
        """Until something has come, so long at most."""
        self._readable(seconds)

    def tell(self, stored_lsn: int) -> None:
        """Say what is stored, and ask for an answer."""
        self._link.put_copy_data(_STATUS.pack(b"r", *[stored_lsn] * 3, 0, 1))
        while self._link.flush():
            if not select.select([], [self._link.socket], [], SEND_S)[1]:
                raise psycopg.OperationalError(f"nothing is read for {SEND_S:g} s")

    def close(self) -> None:
        with suppress(psycopg.Error):
            self._connection.close()

    def _readable(self, seconds: float) -> bool:
        return bool(select.select([self._link.socket], [], [], seconds)[0])

    def _ended(self) -> None:
        result = self._link.get_result()
        if result is not None and result.status == pq.ExecStatus.FATAL_ERROR:
            raise error_from_result(result)
        raise psycopg.OperationalError("the server ended the stream")


def position_of(data: bytes) -> int:
    """Where in the log a message is."""
    position: int = _POSITION.unpack_from(data, 1)[0]
    return position
