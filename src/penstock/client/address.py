"""Where a server is: the data directory it writes, or a host and port."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import InvalidOption, NotRunning

SOCKET_NAME = "penstock.sock"
_HOST_PORT = re.compile(r"(?:\[(?P<bare>[^\]/]+)\]|(?P<host>[^:/\[\]]+)):(?P<port>\d+)")
_MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Local:
    """A server on this machine, by its data directory."""

    directory: str

    def __str__(self) -> str:
        return f"data directory {self.directory}"


@dataclass(frozen=True, slots=True)
class Remote:
    """A server's native port."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


Address = Local | Remote


def address_of(text: str | os.PathLike[str] | Address) -> Address:
    """A directory, or HOST:PORT if no directory is called that."""
    if isinstance(text, Local | Remote):
        return text
    path = os.fspath(text)
    if not Path(path).is_dir() and _HOST_PORT.fullmatch(path):
        return remote(path)
    return Local(path)


def remote(text: str) -> Remote:
    """``HOST:PORT``, ``[::1]:PORT``; raises InvalidOption."""
    found = _HOST_PORT.fullmatch(text)
    if found is None or not 1 <= int(found["port"]) <= _MAX_PORT:
        raise InvalidOption("server", text, "HOST:PORT, the native port of a server")
    return Remote(found["bare"] or found["host"], int(found["port"]))


@contextmanager
def socket_path(directory: str) -> Iterator[str]:
    """The path of a server's socket; good only inside the block.

    Through a descriptor, as the path of a socket may have 107 bytes only.
    """
    holder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{holder}/{SOCKET_NAME}"
    finally:
        os.close(holder)


def not_running(where: Address, error: OSError) -> NotRunning:
    """The error for an address that nobody answers at."""
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return NotRunning(str(where), "nobody listens there")
    return NotRunning(str(where), (error.strerror or str(error)).lower())
