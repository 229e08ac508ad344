"""The listening sockets: which port speaks which protocol, and who is let in."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from penstock.access.grants import Grants
from penstock.access.peer import Peer
from penstock.errors import LimitReached, PenstockError
from penstock.gateway.gateway import Gateway, LoginRequest
from penstock.http.key_file import Key
from penstock.http.keys import Tokens, grants_of
from penstock.server.accepting import Acceptor, Entrance, no_tls
from penstock.server.connection import Connection, PeerCertificate
from penstock.server.descriptors import room_for_connections
from penstock.server.engine import Engine
from penstock.server.logins import LoginAnswer, Logins
from penstock.server.options import ServerOptions
from penstock.server.strangers import ConnectionSlot, Strangers
from penstock.server.tls import named_by
from penstock.server.users import Users
from penstock.server.users_file import UserEntry

BACKLOG = 1024
SOCKET_NAME = "penstock.sock"
# Of one user from one address, that may fail within a minute.
LOGIN_ATTEMPTS = 10
# Places at the local socket when all others are taken: the operator has to come in just
# then.
LOCAL_RESERVE = 16
# After this time without a sign the system asks whether a peer is still there. One that
# has said all and closed is told from one that goes on reading by nothing else.
GONE_S = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One listener: its name, its bound socket, and what speaks there."""

    name: str
    sock: socket.socket
    make_gateway: Callable[[], Gateway]
    connection: type[Connection] = Connection
    local_only: str = ""
    """Why peers beyond this machine are refused; nothing if they are not."""
    tls: Callable[[], ssl.SSLContext | None] = no_tls
    """Asked for every connection; None is plain."""
    http_answer: bytes | None = None
    """To those who speak HTTP where lines are spoken; None: it is not looked for."""


def bind(host: str, port: int, name: str) -> socket.socket:
    """A socket bound to the address; raises OSError naming the listener.

    Its notes are hints for people.
    """
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, address = infos[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _notice_who_is_gone(sock)
        sock.bind(address)
        # Listening claims the port: binding alone lets two servers share it.
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        where = f"{name} port {host}:{port}"
        refused = OSError(error.errno, error.strerror, where)
        if error.errno == errno.EADDRINUSE:
            flag = f"--{name.replace('_', '-')}-port"
            refused.add_note(
                f"give 'penstock serve' another one with {flag}, 0 is a free one"
            )
        raise refused from None
    sock.setblocking(False)
    return sock


def _notice_who_is_gone(sock: socket.socket) -> None:
    """Have the system look after its peers: who is accepted here has its options."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, GONE_S)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, GONE_S // 4)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


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
        self.keys: Tokens | None = None
        """Tokens that one may come in with, if there are any."""
        self.logins = Logins(
            engine.loop, engine.now_s, engine.broker.traffic, users, login_attempts
        )
        self._acceptors: list[Acceptor] = []
        self._addresses: Counter[str] = Counter()
        self._most = min(options.max_connections, room_for_connections())
        self._strangers = Strangers(
            engine.loop, options.max_strangers, options.stranger_s
        )
        self.closed = 0
        """Connections that have ended so far."""

    def listen(self, port: Port) -> None:
        """Accept connections that speak as the port does."""
        self.accept(self.way_in(port))

    def way_in(self, port: Port) -> Entrance:
        """Whom a port lets in, and what it makes of them."""

        def make(place: ConnectionSlot) -> Connection:
            gateway = port.make_gateway()
            made = port.connection(self._engine, gateway, self._options, self)
            made.place = place
            made.leave = place.leave
            made.http_answer = port.http_answer
            made.peer.gateway = port.name
            return made

        entrance = self.entrance(port.sock, make, _refusal, port.tls)
        if not port.local_only:
            return entrance
        admit = partial(_local, port.local_only, entrance.admit)
        return replace(entrance, admit=admit)

    def entrance(
        self,
        sock: socket.socket,
        make: Callable[[ConnectionSlot], asyncio.BaseProtocol],
        refusal: Callable[[LimitReached], bytes],
        tls: Callable[[], ssl.SSLContext | None] = no_tls,
    ) -> Entrance:
        """A way in within the limits; ``refusal`` says no as the protocol has it."""

        def admit(address: str) -> bytes | None:
            full = self.admit(address)
            return None if full is None else refusal(full)

        return Entrance(
            sock=sock,
            admit=admit,
            leave=self.let_go,
            make=make,
            tls=tls,
            handshake_s=self._options.login_s,
            # A client that may open the local socket owns the data.
            strangers=None if sock.family == socket.AF_UNIX else self._strangers,
        )

    def accept(self, entrance: Entrance) -> Acceptor:
        """Accept there until it, or all of this, is closed."""
        acceptor = Acceptor(self._engine.loop, entrance)
        self._acceptors.append(acceptor)
        return acceptor

    def beside(self, gateway: Gateway, name: str) -> Connection:
        """A connection whose bytes come through one that is counted already."""
        made = Connection(self._engine, gateway, self._options, self)
        made.peer.gateway = name
        return made

    def close(self) -> None:
        """Accept no more; who is inside may still log in."""
        for acceptor in self._acceptors:
            acceptor.close()
        self._strangers.close()

    def end(self) -> None:
        """Check no more logins: no client is left that could need it."""
        self.logins.close()

    # The door

    def named(self, peercert: PeerCertificate, peer: Peer) -> UserEntry | None:
        """The user that a certificate names; None if it names none.

        Raises LoginRefused if the users file does not know the user.
        """
        if self._users is None or self._cert_users == "off":
            return None
        name = named_by(peercert, self._cert_users)
        if name is None:
            return None
        known = self._users.find(name)
        if known is None:
            raise self.logins.unknown_user(name, peer)
        return known

    def admit(self, address: str) -> LimitReached | None:
        """Count a connection in; or why it may not come in.

        One without an address is at the local socket, and has places of its own.
        """
        options = self._options
        most = self._most if address else self._most + LOCAL_RESERVE
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
        self.closed += 1
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]

    def check(self, request: LoginRequest, answer: LoginAnswer, peer: Peer) -> None:
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
        self._strangers.tick()
        self._check_users()
        self._check_tokens(now_s)
        for connection in list(self._engine.connections.values()):
            waiting_s = now_s - connection.since_s
            if connection.ends(now_s):
                continue
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


def _refusal(full: LimitReached) -> bytes:
    return f"error: too many {full.what}, limit {full.limit}\r\n".encode()


def _local(
    reason: str, admit: Callable[[str], bytes | None], address: str
) -> bytes | None:
    """Let in who is on this machine."""
    return admit(address) if is_loopback(address) else f"error: {reason}\r\n".encode()
