"""The listening sockets: which port speaks which protocol, and who is let in."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from penstock.broker.access import Grants
from penstock.broker.peer import Peer
from penstock.errors import LimitReached, LoginRefused, PenstockError
from penstock.gateway.gateway import Gateway, LoginRequest
from penstock.http.key_file import Key
from penstock.http.keys import Keys, grants_of
from penstock.server.connection import Connection, PeerCertificate
from penstock.server.engine import Engine
from penstock.server.logins import Answer, Logins
from penstock.server.options import ServerOptions
from penstock.server.tls import Certificates, named_by
from penstock.server.users import Users

logger = logging.getLogger(__name__)

BACKLOG = 1024
SOCKET_NAME = "penstock.sock"
# Of one user from one address, that may fail within a minute.
LOGIN_ATTEMPTS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One listener: its name, its bound socket, and what speaks there."""

    name: str
    sock: socket.socket
    make_gateway: Callable[[], Gateway]
    connection: type[Connection] = Connection
    local_only: str = ""
    """Why peers beyond this machine are refused; nothing if they are not."""
    tls: Certificates | None = None


def bind(host: str, port: int, name: str) -> socket.socket:
    """A socket bound to the address; raises OSError naming the listener."""
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, address = infos[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        # Listening claims the port: binding alone lets two servers share it.
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        where = f"{name} port {host}:{port}"
        raise OSError(error.errno, error.strerror, where) from None
    sock.setblocking(False)
    return sock


def bind_local(directory: str) -> socket.socket:
    """The socket in the data directory, for commands on this machine."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Through a descriptor, as the path of a socket may have 107 bytes only.
    holder = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    path = Path(f"/proc/self/fd/{holder}/{SOCKET_NAME}")
    try:
        path.unlink(missing_ok=True)
        sock.bind(str(path))
        path.chmod(0o600)
        sock.listen(BACKLOG)
    except BaseException:
        sock.close()
        raise
    finally:
        os.close(holder)
    sock.setblocking(False)
    return sock


class Listeners:
    """Accepts connections within the limits, and checks who they are."""

    def __init__(
        self,
        engine: Engine,
        options: ServerOptions,
        users: Users | None,
        login_attempts: int = LOGIN_ATTEMPTS,
        cert_users: str = "off",
    ) -> None:
        self._cert_users = cert_users
        self._engine = engine
        self._options = options
        self._users = users
        self.keys: Keys | None = None
        """Tokens that one may come in with, if there are any."""
        self.logins = Logins(
            engine.loop, engine.now_s, engine.broker.traffic, users, login_attempts
        )
        self._servers: list[asyncio.Server] = []
        self._addresses: Counter[str] = Counter()

    async def listen(self, port: Port) -> None:
        def make() -> Connection:
            gateway = port.make_gateway()
            made = port.connection(self._engine, gateway, self._options, self)
            made.local_only = port.local_only
            made.peer.gateway = port.name
            return made

        loop = self._engine.loop
        if port.sock.family == socket.AF_UNIX:
            server = await loop.create_unix_server(make, sock=port.sock)
        else:
            tls = None if port.tls is None else port.tls.front()
            server = await loop.create_server(
                make, sock=port.sock, backlog=BACKLOG, ssl=tls
            )
        self._servers.append(server)

    def beside(self, gateway: Gateway, name: str) -> Connection:
        """A connection whose bytes come through one that is counted already."""
        made = Connection(self._engine, gateway, self._options, _Inside(self))
        made.peer.gateway = name
        return made

    def close(self) -> None:
        """Accept no more; who is inside may still log in."""
        for server in self._servers:
            server.close()

    def end(self) -> None:
        """Check no more logins: nobody is left who could need it."""
        self.logins.close()

    # The door

    def enter(self, connection: Connection) -> str | None:
        if connection.local_only and not is_loopback(connection.address):
            return connection.local_only
        try:
            connection.gateway.vouched = self.vouched(connection.peercert)
        except LoginRefused as error:
            return str(error)
        full = self.admit(connection.address)
        return None if full is None else f"too many {full.what}, limit {full.limit}"

    def vouched(self, peercert: PeerCertificate) -> Grants | None:
        """What a user may do who is named by a certificate; None if it names nobody.

        Raises LoginRefused if the users file does not know the user.
        """
        if self._users is None or self._cert_users == "off":
            return None
        name = named_by(peercert, self._cert_users)
        if name is None:
            return None
        known = self._users.find(name)
        if known is None:
            raise LoginRefused(f"the certificate's user {name[:80]} is not known here")
        return known.grants

    def leave(self, connection: Connection) -> None:
        self.let_go(connection.address)

    def admit(self, address: str) -> LimitReached | None:
        """Count a connection in; or why it may not come in."""
        options = self._options
        most = options.max_connections
        if self._addresses.total() >= most:
            return LimitReached("connections", most, "max_connections")
        limit = options.max_connections_per_address
        if address and limit and self._addresses[address] >= limit:
            what = f"connections from {address}"
            return LimitReached(what, limit, "max_connections_per_address")
        self._addresses[address] += 1
        return None

    def let_go(self, address: str) -> None:
        """Count a connection out."""
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]

    def check(self, request: LoginRequest, answer: Answer, peer: Peer) -> None:
        """Have a password or token checked; ``answer`` is called in the loop."""
        if request.token is not None:  # no secret to be guessed, so it takes no time
            self._engine.loop.call_soon(answer, self._holder(request.token, peer))
        else:
            self.logins.check(request, answer, peer)

    def _holder(self, token: str, peer: Peer) -> Grants | PenstockError:
        """What a token lets one do; or why it does not count."""
        now_ms = int(self._engine.now_s() * 1000)
        key = None if self.keys is None else self.keys.find(token, now_ms)
        return self.logins.wrong_token(peer) if key is None else grants_of(key)

    def find_user(self, name: str) -> object:
        """What the users file says of a user now; None if it does not know them."""
        return None if self._users is None else self._users.find(name)

    def check_idle(self, now_s: float) -> None:
        """Close connections that take too long to say who they are, or anything."""
        options = self._options
        self.logins.tick(now_s)
        self._check_users()
        self._check_tokens(now_s)
        for connection in list(self._engine.connections.values()):
            waiting_s = now_s - connection.since_s
            if connection.waits_for_login and waiting_s > options.login_s:
                connection.close(f"no login within {options.login_s:g} s")
            elif connection.times_out(now_s):
                connection.time_out(now_s)
            elif options.idle_s and now_s - connection.active_s > options.idle_s:
                connection.close(f"nothing came for {options.idle_s:g} s")

    def _check_tokens(self, now_s: float) -> None:
        """End connections whose token was removed, made anew, or has expired."""
        keys = self.keys
        if keys is None:
            return
        for connection in list(self._engine.connections.values()):
            key = connection.gateway.grants.by
            if isinstance(key, Key) and not keys.still(key, int(now_s * 1000)):
                connection.cut_off("the token counts no more")

    def _check_users(self) -> None:
        """End connections of users of whom the users file says something else now."""
        if not self.logins.changed():
            return
        for connection in list(self._engine.connections.values()):
            user = connection.user
            if user is not None and not self.logins.still(user):
                connection.cut_off("the users file has changed for this user")


def is_loopback(address: str) -> bool:
    """Whether a peer is on this machine; the local socket has no address."""
    return not address or ipaddress.ip_address(address.split("%")[0]).is_loopback


class _Inside:
    """The door of those who are in: only who they are is looked at."""

    def __init__(self, door: Listeners) -> None:
        self.check = door.check
        self._door = door

    def enter(self, connection: Connection) -> str | None:
        try:
            connection.gateway.vouched = self._door.vouched(connection.peercert)
        except LoginRefused as error:
            return str(error)
        return None

    def leave(self, connection: Connection) -> None:
        """It was not counted."""
