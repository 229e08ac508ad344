"""Where a server is: the data directory it writes, or a host and port.

penstock-data                 a data directory on this machine
broker.example:8410           the native port of a server, also [::1]:8410
penstock://broker.example     the same; without a port it is 8410
penstock+tls://broker.example over TLS
"""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.client import tls
from penstock.client.tls import Tls
from penstock.errors import ConnectionLost, InvalidOption, NotRunning, TlsFailed

SOCKET_NAME = "penstock.sock"
_HOST_PORT = re.compile(r"(?:\[(?P<bare>[^\]/]+)\]|(?P<host>[^:/\[\]]+)):(?P<port>\d+)")
_MAX_PORT = 65_535
PLAIN, SECURE = "penstock://", "penstock+tls://"
PORT = 8410
# Names the server of programs and commands that say no other.
VARIABLE = "PENSTOCK_SERVER"
# Why there is no server: the only reason that may pass by itself, soon.
NO_LISTENER = "nothing listens there"
# Why a connection is lost, as a rule.
CLOSED = "the server closed it"
_LIMIT = "HOST:PORT, the native port of a server, also behind penstock+tls://"


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
    tls: Tls | None = None
    """None: plainly."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SECURE if self.tls else ''}{host}:{self.port}"


ServerAddress = Local | Remote


def address_of(
    text: str | os.PathLike[str] | ServerAddress | None, secure: Tls | None = None
) -> ServerAddress:
    """A directory, or HOST:PORT if no directory is called that; or a URL.

    None is what $PENSTOCK_SERVER says. ``secure`` says whom to trust. Raises
    InvalidOption if it is given for what is not behind ``penstock+tls://``.
    """
    if isinstance(text, Local | Remote):
        return text
    if text is None:
        text = os.environ.get(VARIABLE)
        if not text:
            raise InvalidOption("address", None, f"given, or else named by ${VARIABLE}")
    path = os.fspath(text)
    is_url = path.startswith((PLAIN, SECURE)) and isinstance(text, str)
    if is_url or (not Path(path).is_dir() and _HOST_PORT.fullmatch(path)):
        return remote(path, secure)
    check_plain(path, secure)
    return Local(path)


def remote(text: str, secure: Tls | None = None) -> Remote:
    """``HOST:PORT``, ``[::1]:PORT``, or one of the URLs; raises InvalidOption."""
    scheme = next((one for one in (PLAIN, SECURE) if text.startswith(one)), "")
    place = text.removeprefix(scheme).removesuffix("/" if scheme else "")
    found = _HOST_PORT.fullmatch(place)
    if scheme and found is None:
        found = _HOST_PORT.fullmatch(f"{place}:{PORT}")
    if found is None or not 1 <= int(found["port"]) <= _MAX_PORT:
        raise InvalidOption("server", text, _LIMIT)
    host, port = found["bare"] or found["host"], int(found["port"])
    if scheme == SECURE:
        return Remote(host, port, secure or Tls())
    check_plain(text, secure)
    return Remote(host, port)


def check_plain(where: str, secure: Tls | None) -> None:
    """Raises InvalidOption if TLS was spoken of and is not spoken there."""
    for name in () if secure is None else ("ca_file", "cert_file"):
        value = getattr(secure, name)
        if value is not None:
            limit = f"left out, as {where} does not begin with {SECURE}"
            raise InvalidOption(name, value, limit)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address; of a name it is not known."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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


def not_running(where: ServerAddress, error: OSError) -> NotRunning | TlsFailed:
    """The error for an address that no server answers at, or none to be trusted."""
    if (untrusted := tls.failed(where, error)) is not None:
        return untrusted
    if isinstance(error, FileNotFoundError | ConnectionRefusedError):
        return NotRunning(str(where), NO_LISTENER)
    if isinstance(where, Remote) and where.tls and tls.is_cut(error):
        return NotRunning(str(where), tls.CUT)
    return NotRunning(str(where), (error.strerror or str(error)).lower())


def reason_of(error: OSError) -> str:
    """Why a connection has ended, as a person would say it."""
    if isinstance(error, BrokenPipeError):
        return CLOSED
    return error.strerror or str(error)


def lost(where: ServerAddress, reason: str, *, welcome: bool) -> ConnectionLost:
    """The error for a connection that has ended; ``welcome``: we were let in before."""
    error = ConnectionLost(str(where), reason)
    if isinstance(where, Remote) and not welcome:
        maybe = f"if it speaks TLS there, {tls.WANTS_TLS_HINT}"
        error.hint = maybe if where.tls is None else tls.SHOW_ONE_HINT
    return error
