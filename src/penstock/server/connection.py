"""One connection: a socket that drives a gateway.

Reading stops while the server is congested, while a password is checked, while a user
has to wait who publishes faster than it may, while the peer does not read what it was
sent, and, after one more read, while questions wait for their turn: so what a
connection costs in memory is bounded by two reads and its output buffer. Until the peer
has said who it is all are small.

A connection that is closed has a little time for the rest of its output. Then it is
cut off, whatever its peer does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

from penstock.access.account import Account
from penstock.access.grants import Grants
from penstock.access.peer import Peer
from penstock.errors import LoginRefused, PenstockError, QuotaReached
from penstock.gateway.gateway import Gateway, LoginRequest
from penstock.server.engine import Engine
from penstock.server.logins import LoginAnswer, LoginResult
from penstock.server.options import ServerOptions
from penstock.server.strangers import NO_PLACE, ConnectionSlot
from penstock.server.taking import Taking, has_sent
from penstock.server.users_file import UserEntry
from penstock.wire.http_guess import FIRST_BYTES, Guess, guess

logger = logging.getLogger(__name__)

# Most bytes of a read before a login. Who is checked waits with what was read, and
# packets of two bytes become objects of a hundred.
LOGIN_READ_BYTES = 1 << 10
# A gateway that gave this much at once may have more.
_MORE_BYTES = 1 << 16
# How long a peer that was sent the last word may go on.
LINGER_S = 2.0
# How long a peer that was cut off may take to read why.
CUT_OFF_S = 0.5
# How long one may take nothing of the last output, before it is cut off.
CLOSE_S = 5.0

PeerCertificate = Mapping[str, Any] | None
"""What was verified of a client's certificate, as ``getpeercert`` has it."""


class Door(Protocol):
    """Who is let in."""

    def named(self, peercert: PeerCertificate, peer: Peer) -> UserEntry | None:
        """The user that a certificate names; raises LoginRefused if it is not known."""

    def check(self, request: LoginRequest, answer: LoginAnswer, peer: Peer) -> None:
        """Have a password checked; ``answer`` is called in the loop."""


class Connection(asyncio.BufferedProtocol):
    """Made by a listener for each peer."""

    def __init__(
        self, engine: Engine, gateway: Gateway, options: ServerOptions, door: Door
    ) -> None:
        self.engine = engine
        self.gateway = gateway
        self.address = ""
        self.leave: Callable[[], None] | None = None
        """Gives the connection's place back, once it is gone."""
        self.place: ConnectionSlot = NO_PLACE
        """Among strangers, until it is known."""
        self.http_answer: bytes | None = None
        """To a peer that speaks HTTP; None where that is not looked for."""
        self.since_s = engine.now_s()
        self.active_s = self.since_s
        self.peer = Peer("", self.since_s)
        """For the list of who is connected."""
        self.user: UserEntry | None = None
        """Who has logged in, as the users file had it then."""
        self._options = options
        self._door = door
        self._known = False
        """Whether the peer was found to be settled, and has its full measure."""
        self._first = b""
        """What came first, until it is enough to tell that it is not HTTP."""
        self._shut_s: float | None = None
        """Since when it is to end."""
        self._taking: Taking | None = None
        self._buffer = memoryview(bytearray(0))
        self._transport: asyncio.Transport | None = None
        self._held: list[bytes] = []
        self._reading = True
        self._unread = False
        """The peer does not read: nothing more is made for it."""
        self._ended = False
        """The peer sends no more."""
        self._checking = False
        self._stopped = False
        self._lingering = False
        """All was said, and the peer is heard out."""
        self.revoked = False
        """Whether the login counts no more, and it ends for that."""
        self._account: Account | None = None
        """Of the user who has logged in."""
        self._owing = False
        """The user has published more than its rate allows: it waits."""
        self._publishes = False
        """Whether this connection has a part in what such a user publishes."""

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the methods of asyncio.Transport, not its name.
        transport = self._transport = cast(asyncio.Transport, transport)
        self.address = self.peer.address = _address(transport)
        self._limit(transport)
        self.engine.enter(self)
        try:
            peercert = transport.get_extra_info("peercert")
            self._name(self._door.named(peercert, self.peer))
        except (LoginRefused, QuotaReached) as error:
            transport.write(f"error: {error}\r\n".encode())
            self.stop_reading()
            self.close(str(error))
            return
        self._guarded(lambda: self.gateway.connected(self.engine.now_s()))
        self.flush(self.engine.now_s())

    def _limit(self, transport: asyncio.Transport) -> None:
        """Let the peer have as much of input and output as it may have by now."""
        self._known = self.gateway.settled
        if self._known:
            self.place.known()
        options = self._options
        size = options.read_bytes
        if not self._known:
            size = min(size, LOGIN_READ_BYTES)
        elif self._account is not None and self._account.paced:
            # A debt of seconds, not of all that a whole buffer can hold.
            size = min(size, self._account.read_bytes)
        self._buffer = self.engine.buffer(options.read_bytes)[:size]
        room = options.output_buffer_bytes
        high = room if self._known else min(room, options.login_bytes)
        transport.set_write_buffer_limits(high=high)
        # TLS takes in on its own what was not asked for yet; so do WebSockets.
        if hasattr(transport, "set_read_buffer_limits"):
            transport.set_read_buffer_limits(high=max(size, LOGIN_READ_BYTES))
        if self._known and hasattr(transport, "let_in"):
            transport.let_in()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._lingering:
            return
        data = bytes(self._buffer[:nbytes])
        if self.http_answer is not None:
            data = self._look(data)
        if data:
            self.arrived(data)

    def arrived(self, data: bytes) -> None:
        """Bytes have come that are for the gateway."""
        self.take_in(data)

    def _look(self, data: bytes) -> bytes:
        """What of the first bytes the gateway may have by now."""
        data, self._first = self._first + data, b""
        match guess(data):
            case Guess.PERHAPS:
                self._first = data[:FIRST_BYTES]
                return b""
            case Guess.OTHER:
                self.http_answer = None
                return data
            case Guess.HTTP:
                self._turn_away(self.http_answer or b"")
            case Guess.TLS:
                self._turn_away(b"")
        return b""

    def _turn_away(self, last_word: bytes) -> None:
        """Answer who speaks another protocol here; nothing it sends means anything."""
        self._note_end("it speaks another protocol")
        if self._transport is not None:
            self._transport.write(last_word)
            self._hear_out(self._transport)

    def eof_received(self) -> bool:
        self._ended = True
        if self._first:
            first, self._first = self._first, b""
            self.take_in(first)
        if self._lingering and self._transport is not None:
            self._shut(self._transport)
        elif not self._held and not self.gateway.busy:
            self._end()
        return True  # we close when our side has been said

    def pause_writing(self) -> None:
        self._unread = True
        self._stop_reading()

    def resume_writing(self) -> None:
        self._unread = False
        self.flush(self.engine.now_s())
        self.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = self._taking = None
        self._held.clear()
        self._leave_account()
        self._guarded(lambda: self.gateway.disconnected(self.engine.now_s()))
        self.engine.leave(self)
        if self.leave is not None:
            self.leave()

    # Called by the engine

    def flush(self, now_s: float) -> None:
        """Send what the gateway has, unless the peer has to read first."""
        transport = self._transport
        if transport is None or self._unread or self._lingering:
            return
        room = self._options.output_buffer_bytes
        try:
            out = self.gateway.output(now_s, room)
        except Exception:
            self._fail()
            out = []
        if out:
            data = out[0] if len(out) == 1 else b"".join(out)
            if data:
                transport.write(data)
                self.peer.bytes_out += len(data)
            if len(data) >= min(_MORE_BYTES, room):
                self.engine.broker.awake[self.gateway] = None
                self.engine.kick()
                return
        if self.gateway.closing and self.gateway not in self.engine.broker.waiting:
            self._close_kindly(transport)

    def _close_kindly(self, transport: asyncio.Transport) -> None:
        """Close; what a peer still sends must not cost it our last word.

        A socket that is closed with unread input resets the connection, and the peer
        may never see what was sent before.
        """
        if self._ended or not self.gateway.lingers or not transport.can_write_eof():
            self._shut(transport)
        elif not self._lingering:
            self._hear_out(transport)

    def _hear_out(self, transport: asyncio.Transport) -> None:
        """Say no more, and let the peer go on for a moment."""
        self._lingering = True
        self._shut_s = self.engine.now_s()
        self._resume_reading()
        if transport.can_write_eof():
            transport.write_eof()
        self._guarded(lambda: self.gateway.disconnected(self.engine.now_s()))
        self.engine.loop.call_later(LINGER_S, transport.close)

    def shift(self, step_s: float) -> None:
        """The clock was set: what was a while ago still was."""
        self.since_s += step_s
        self.active_s += step_s
        if self._shut_s is not None:
            self._shut_s += step_s

    def _shut(self, transport: asyncio.Transport) -> None:
        if self._shut_s is None:
            self._shut_s = self.engine.now_s()
        transport.close()

    def ends(self, now_s: float) -> bool:
        """Whether it is to end; then it is cut off, should it not do so by itself.

        A peer that was known may take its time, as long as it takes something.
        """
        transport = self._transport
        if self._shut_s is None and self.gateway.closing:
            self._shut_s = now_s  # perhaps the peer does not read the last word
        if self._shut_s is None or transport is None:
            return False
        if self._taking is None:
            self._taking = Taking(transport)
        late = now_s - self._shut_s > CLOSE_S
        if self._taking.stuck(now_s, CLOSE_S) or (late and not self._known):
            transport.abort()
        return True

    def resume(self) -> None:
        """Go on with what was held, then with reading."""
        while self._held and not self.gateway.busy and not self._blocked():
            self._receive(self._held.pop(0))
        if self._held or self.gateway.busy:
            self._hold_up()
        elif self._ended:
            self._end()
        elif self._blocked():
            self._hold_up()  # to be resumed when there is room again
        else:
            self._resume_reading()

    def go_on(self) -> None:
        """Its turn: have one question answered, and see what follows."""
        if self.gateway.busy and not self._blocked():
            now_s = self.active_s = self.engine.now_s()
            try:
                self._for_user(lambda: self.gateway.go_on(now_s))
            except Exception:
                self._fail()
            else:
                self._carried_out(now_s)
        self.resume()

    def _resume_reading(self) -> None:
        if not self._reading and self._transport is not None:
            self._reading = True
            self.active_s = self.engine.now_s()  # until now we did not listen
            self._transport.resume_reading()

    def stop_reading(self) -> None:
        """Take in no more, for good: the server ends."""
        self._stop_reading()
        self._stopped = True

    def finish(self) -> None:
        """Send the last answers and close."""
        now_s = self.engine.now_s()
        self._guarded(lambda: self.gateway.part(now_s))
        self.flush(now_s)
        if self._transport is not None:
            self._shut(self._transport)

    def close(self, reason: str) -> None:
        """End the connection for a reason of ours."""
        if self._transport is not None:
            self._note_end(reason)
            self._shut(self._transport)

    def _note_end(self, reason: str) -> None:
        """Have the log say why: seldom, as a peer can bring it about at any time."""
        self.engine.broker.throttle.log(
            logger,
            logging.INFO,
            "connection of %s closed: %s",
            self.address,
            reason,
            about=self.address,
            extra={"action": "connection_closed", "peer": self.address},
        )

    def cut_off(self, reason: str) -> None:
        """Say that the login counts no more, and end: whether the peer reads or not."""
        if self._transport is None or self._lingering:
            return
        now_s = self.engine.now_s()
        logger.info(
            "connection of %s cut off: %s",
            self.address,
            reason,
            extra={"action": "connection_closed", "peer": self.address},
        )
        self._stopped = self.revoked = True
        self._held.clear()
        self.gateway.lingers = True
        self._guarded(lambda: self.gateway.cut_off(reason, now_s))
        self.flush(now_s)
        self._guarded(lambda: self.gateway.disconnected(now_s))
        self.engine.kick()
        self.engine.loop.call_later(CUT_OFF_S, self.abort)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    # Taking in

    def take_in(self, data: bytes) -> None:
        """Bytes have come: carry them out, or hold them until that can be."""
        if self._publishes and self._account is not None:
            self._owe(self._account)  # perhaps by what came over another connection
        if self._held or self.gateway.busy or self._blocked():
            self._held.append(data)
            self._hold_up()
        else:
            self._receive(data)

    def _receive(self, data: bytes) -> None:
        self.peer.bytes_in += len(data)
        now_s = self.active_s = self.engine.now_s()
        try:
            if self._account is None:
                self.gateway.receive(data, now_s)
            else:
                self._for_user(lambda: self.gateway.receive(data, now_s))
        except Exception:
            self._fail()
            return
        self._carried_out(now_s)

    def _carried_out(self, now_s: float) -> None:
        """See to what the gateway wants, after it has done something."""
        engine, gateway = self.engine, self.gateway
        if gateway.login is not None:
            self._log_in(gateway.login)
        if not self._known and gateway.settled and self._transport is not None:
            self._limit(self._transport)
        if gateway.busy:
            engine.line_up(self)
        if gateway.has_output:
            self.flush(now_s)
        engine.kick()

    @property
    def waits_for_login(self) -> bool:
        """Whether the peer takes its time to log in."""
        return not self.gateway.settled and not self._checking

    def times_out(self, now_s: float) -> bool:
        """Whether the peer was silent for longer than its protocol has it."""
        patience_s = self.gateway.patience_s
        if not patience_s or now_s - self.active_s <= patience_s:
            return False
        # Who is not listened to may have said something.
        return self._reading or self._transport is None or not has_sent(self._transport)

    def time_out(self, now_s: float) -> None:
        """Tell the peer, as far as it has to be told, and close."""
        self._guarded(lambda: self.gateway.timed_out(now_s))
        self.flush(now_s)
        self.close(f"nothing came for {self.gateway.patience_s:g} s")

    def _blocked(self) -> bool:
        held = self._unread or self._checking or self._owing or self._stopped
        return held or self.engine.congested

    def _hold_up(self) -> None:
        self._stop_reading()
        if self.engine.congested:
            self.engine.pause(self)
        if self._owing:
            self.engine.owing[self] = None
        if self.gateway.busy and not self._blocked():
            self.engine.line_up(self)

    def _stop_reading(self) -> None:
        if self._reading and self._transport is not None:
            self._reading = False
            self._transport.pause_reading()

    def _end(self) -> None:
        now_s = self.engine.now_s()
        if not self.gateway.closing:  # a resumed connection comes here again
            eof = self.gateway.eof
            self._guarded(lambda: self._for_user(lambda: eof(now_s)))
        self.flush(now_s)
        self.engine.kick()

    def _log_in(self, request: LoginRequest) -> None:
        self._checking = True
        self.place.excused()
        self._stop_reading()

        def answered(found: LoginResult) -> None:
            self._checking = False
            self.since_s = self.engine.now_s()  # waiting was not the peer's fault
            if self._transport is None:
                return  # it has gone meanwhile
            now_s = self.engine.now_s()
            self._guarded(lambda: self._answer_login(found, now_s))
            if self.gateway.settled and self._transport is not None:
                self._limit(self._transport)
            if self.gateway.login is not None:
                self._log_in(self.gateway.login)
            else:
                self.place.waits()  # nothing, if it is known now
            self.flush(now_s)
            self.resume()
            self.engine.kick()

        self._door.check(request, answered, self.peer)

    def _answer_login(self, found: LoginResult, now_s: float) -> None:
        self.gateway.refusal = None
        if isinstance(found, PenstockError):
            if not isinstance(found, LoginRefused):
                self.gateway.refusal = found
            self.gateway.logged_in(False, now_s)
            return
        self._leave_account()  # that of the user whom a certificate has named
        grants = found.grants if isinstance(found, UserEntry) else found
        try:
            self._enter_account(grants)
        except QuotaReached as error:
            self.gateway.turned_away(error, now_s)
            return
        self.gateway.grants = grants
        self.user = found if isinstance(found, UserEntry) else None
        self._for_user(lambda: self.gateway.logged_in(True, now_s))

    def _name(self, user: UserEntry | None) -> None:
        """The peer's certificate names a user; raises QuotaReached."""
        if user is not None:
            self._enter_account(user.grants)
            self.gateway.vouched = user.grants
            self.user = user

    def _enter_account(self, grants: Grants) -> None:
        account = self.engine.broker.accounts.of(grants)
        if account is not None:
            account.enter()
            self._account = account
            if account.paced:
                self._owe(account)

    def _for_user(self, step: Callable[[], None]) -> None:
        """Do something on the user's account; if it is in debt then, wait."""
        account = self._account
        charges = 0 if account is None else account.charges
        with self.engine.broker.accounts.acting(account):
            step()
        if account is not None and account.charges != charges:
            self._publishes = True
            self._owe(account)

    def _owe(self, account: Account) -> None:
        if not self._owing and account.wait_s():
            self._owing = True
            account.waits()
            self._hold_up()

    def has_paid(self) -> bool:
        """Whether the user has waited for long enough; then this may be resumed."""
        self._owing = self._account is not None and self._account.wait_s() > 0
        return not self._owing

    def _leave_account(self) -> None:
        """The user is not here any more."""
        account, self._account = self._account, None
        if account is not None:
            account.leave()

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception:
            self._fail()

    def _fail(self) -> None:
        """A mistake of ours: it costs this connection, and no other."""
        logger.exception(
            "connection of %s failed",
            self.address,
            extra={"action": "connection_failed", "peer": self.address},
        )
        self.abort()


def _address(transport: asyncio.Transport) -> str:
    """Where the peer is; nothing if it is on this machine, at the local socket."""
    peer = transport.get_extra_info("peername")
    return str(peer[0]) if isinstance(peer, tuple) else ""
